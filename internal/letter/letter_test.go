package letter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/letter"
)

// An apply's JSON has the document unchanged. A document that is not an object would make
// the JSON invalid or unexpected.
func TestAReceiptsDocumentIsAnObject(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		document string
		want     bool
	}{
		"an object":             {`{"a": [1]}`, true},
		"an object after space": {" \n{}", true},
		"nothing":               {``, true},
		"a list":                {`[{}]`, false},
		"a string":              {`"{}"`, false},
		"null":                  {`null`, false},
		"half an object":        {`{"a":`, false},
		"two objects":           {`{}{}`, false},
		"white space":           {` `, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, letter.IsReceipt([]byte(test.document)))
		})
	}
}
