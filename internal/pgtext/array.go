package pgtext

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// Array returns the text form of an array of n elements, for a parameter of any array
// type. With one text the driver need not allocate for each element.
func Array(n int, element func(i int) string) string {
	return list(n, func(b *strings.Builder, i int) {
		b.WriteByte('"')
		_, _ = escapes.WriteString(b, element(i)) // a Builder returns no error
		b.WriteByte('"')
	})
}

// Integers returns the text form of an array of n integers.
func Integers(n int, element func(i int) int64) string {
	var digits [20]byte
	return list(n, func(b *strings.Builder, i int) {
		b.Write(strconv.AppendInt(digits[:0], element(i), 10))
	})
}

// Addresses returns the text form of an array of n row addresses.
func Addresses(n int, element func(i int) pgtype.TID) string {
	var digits [40]byte
	return list(n, func(b *strings.Builder, i int) {
		address := element(i)
		text := strconv.AppendUint(append(digits[:0], `"(`...), uint64(address.BlockNumber), 10)
		text = strconv.AppendUint(append(text, ','), uint64(address.OffsetNumber), 10)
		b.Write(append(text, `)"`...))
	})
}

// list writes n elements. It allocates once if they are about as long as the first.
func list(n int, write func(b *strings.Builder, i int)) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		write(&b, i)
		if i == 0 {
			b.Grow((n - 1) * (b.Len() + 1))
		}
	}
	b.WriteByte('}')
	return b.String()
}
