package fleet

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/lease-governance/leasereaper/reaper"
)

// Member is one of the databases.
type Member struct {
	Name   string        // unique in a list, not empty
	DB     reaper.DB     // usually a pool; the caller opens and closes it
	Config reaper.Config // a nil Logger is the fleet's, with the member's name
}

// checkNames reports each name that the list has more than once.
func checkNames(members []Member) error {
	var faults []error
	count := make(map[string]int, len(members))
	for _, m := range members {
		count[m.Name]++
		if count[m.Name] == 2 {
			faults = append(faults, fmt.Errorf("%w: %q", ErrDuplicateMember, m.Name))
		}
	}
	return errors.Join(faults...)
}

// same reports whether two members are the same: see [Config.Members].
func same(a, b Member) bool {
	a.Config.Logger, b.Config.Logger = nil, nil
	return a.Name == b.Name && sameValue(reflect.ValueOf(a), reflect.ValueOf(b), true)
}

// sameValue compares values of one type. own says that they are parts of a Config, which
// nobody writes to. A map inside a part of the caller's may be written to meanwhile, so it is
// not read. Functions cannot be compared, but their code can.
func sameValue(a, b reflect.Value, own bool) bool {
	switch a.Kind() {
	case reflect.Func:
		return a.Pointer() == b.Pointer()
	case reflect.Interface:
		return sameDynamic(a.Elem(), b.Elem())
	case reflect.Struct:
		return sameFields(a, b, own)
	case reflect.Slice, reflect.Array:
		return sameElements(a, b, own)
	case reflect.Map:
		return a.Pointer() == b.Pointer() || own && a.IsNil() == b.IsNil() && sameEntries(a, b)
	}
	return a.Equal(b)
}

// sameDynamic compares what two interfaces hold.
func sameDynamic(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	return a.Type() == b.Type() && sameValue(a, b, false)
}

func sameFields(a, b reflect.Value, own bool) bool {
	for i := range a.NumField() {
		if !sameValue(a.Field(i), b.Field(i), own) {
			return false
		}
	}
	return true
}

func sameElements(a, b reflect.Value, own bool) bool {
	if a.Len() != b.Len() || a.Kind() == reflect.Slice && a.IsNil() != b.IsNil() {
		return false
	}
	for i := range a.Len() {
		if !sameValue(a.Index(i), b.Index(i), own) {
			return false
		}
	}
	return true
}

func sameEntries(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for entries := a.MapRange(); entries.Next(); {
		other := b.MapIndex(entries.Key())
		if !other.IsValid() || !sameValue(entries.Value(), other, true) {
			return false
		}
	}
	return true
}
