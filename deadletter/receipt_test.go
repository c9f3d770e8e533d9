package deadletter_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
)

// An apply's JSON is stored and read back by other tools. A receipt that comes
// back different, or with its numbers rounded, is evidence against a true one.
func TestReceiptSurvivesItsJSON(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		document string
		want     deadletter.Receipt
	}{
		"a move":                     {`{"job_id":"7","refused":false,"state":"dead_letter"}`, deadletter.Receipt{JobID: "7"}},
		"a refusal":                  {`{"job_id":"7","refused":true,"reason":"no"}`, deadletter.Receipt{JobID: "7", Refused: true, Reason: "no"}},
		"a key that is a number":     {`{"job_id":9223372036854775807}`, deadletter.Receipt{JobID: "9223372036854775807"}},
		"big numbers":                {`{"n":9007199254740993,"x":1.10,"e":1e400}`, deadletter.Receipt{}},
		"nothing":                    {`{}`, deadletter.Receipt{}},
		"nulls":                      {`{"job_id":null,"refused":null,"reason":null}`, deadletter.Receipt{}},
		"a reason that is an object": {`{"refused":true,"reason":{"code":7}}`, deadletter.Receipt{Refused: true, Reason: `{"code":7}`}},
		"any characters":             {`{"job_id":"☃\"\\\n","reason":"\u0000"}`, deadletter.Receipt{JobID: "☃\"\\\n", Reason: "\x00"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.want.Document = json.RawMessage(test.document)
			var got deadletter.Receipt
			require.NoError(t, json.Unmarshal([]byte(test.document), &got))
			require.Equal(t, test.want, got)

			text, err := json.Marshal(got)
			require.NoError(t, err)
			require.Equal(t, test.document, string(text))

			var again deadletter.Receipt
			require.NoError(t, json.Unmarshal(text, &again))
			require.Equal(t, got, again)
		})
	}
}

// The reaper matches receipts by the key it gave, whatever a document calls it.
func TestNewReceiptKeepsTheKeyAndTheDocument(t *testing.T) {
	t.Parallel()

	receipt, err := deadletter.NewReceipt("7", []byte(` { "job_id" : "8", "refused" : true, "reason" : "no", "n" : 9007199254740993 } `))
	require.NoError(t, err)
	require.Equal(t, deadletter.Receipt{
		JobID: "7", Refused: true, Reason: "no",
		Document: json.RawMessage(`{"job_id":"8","refused":true,"reason":"no","n":9007199254740993}`),
	}, receipt)
}

// The document often lies in a buffer that the next row overwrites.
func TestNewReceiptCopiesTheDocument(t *testing.T) {
	t.Parallel()

	buffer := []byte(`{"n":1}`)
	receipt, err := deadletter.NewReceipt("7", buffer)
	require.NoError(t, err)
	buffer[5] = '2'
	require.JSONEq(t, `{"n":1}`, string(receipt.Document))
}

// What is no object says nothing about the job. The half-made receipt of one
// would be taken for a move.
func TestNewReceiptTakesObjectsOnly(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ document string }{
		"nothing":            {``},
		"white space":        {" \n"},
		"null":               {`null`},
		"null, with space":   {` null `},
		"a list":             {`[]`},
		"a list of objects":  {`[{}]`},
		"a string":           {`"{}"`},
		"a number":           {`1`},
		"a boolean":          {`true`},
		"half an object":     {`{"a":`},
		"two objects":        {`{}{}`},
		"refused as a word":  {`{"refused":"true"}`},
		"refused as a digit": {`{"refused":1}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			receipt, err := deadletter.NewReceipt("7", []byte(test.document))
			require.Error(t, err)
			require.Zero(t, receipt)
		})
	}
}

// A mover's refusal shows in the report as the function's refusals do.
func TestRefuseHasTheJSONOfARefusal(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ id, reason, want string }{
		"with a reason":    {"7", "not now", `{"job_id":"7","refused":true,"reason":"not now"}`},
		"without a reason": {"7", "", `{"job_id":"7","refused":true}`},
		"odd characters":   {`a"b`, "it's\n\\", `{"job_id":"a\"b","refused":true,"reason":"it's\n\\"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			receipt := deadletter.Refuse(test.id, test.reason)
			require.Equal(t, deadletter.Receipt{JobID: test.id, Refused: true, Reason: test.reason}, receipt)
			text, err := json.Marshal(receipt)
			require.NoError(t, err)
			require.Equal(t, test.want, string(text))

			var again deadletter.Receipt
			require.NoError(t, json.Unmarshal(text, &again))
			receipt.Document = text
			require.Equal(t, receipt, again)
		})
	}
}

// No document may crash a reaper, and what is taken comes back as it was.
func FuzzNewReceipt(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"refused":true,"reason":"x"}`, `null`, `[]`, `{"job_id":{"a":[1e999]}}`, "{\"\xff\":1}", `{"reason":{"a": "<"}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, document string) {
		receipt, err := deadletter.NewReceipt("7", []byte(document))
		if err != nil {
			require.Zero(t, receipt)
			return
		}
		require.Equal(t, "7", receipt.JobID)
		require.IsType(t, map[string]any{}, exactly(t, document), "it is an object")
		require.Equal(t, exactly(t, document), exactly(t, string(receipt.Document)))

		text, err := json.Marshal(receipt)
		require.NoError(t, err)
		require.Equal(t, exactly(t, document), exactly(t, string(text)))
		again, err := deadletter.NewReceipt("7", text)
		require.NoError(t, err)
		require.Equal(t, receipt.Refused, again.Refused)
	})
}

// exactly decodes JSON with its numbers as they are written.
func exactly(t *testing.T, text string) (decoded any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&decoded))
	return decoded
}

func ExampleNewReceipt() {
	receipt, err := deadletter.NewReceipt("7", []byte(`{"refused": true, "reason": "on hold", "ticket": 9007199254740993}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(receipt.JobID, receipt.Refused, receipt.Reason)
	fmt.Println(string(receipt.Document))
	// Output:
	// 7 true on hold
	// {"refused":true,"reason":"on hold","ticket":9007199254740993}
}

func ExampleRefuse() {
	text, err := json.Marshal(deadletter.Refuse("7", "on hold"))
	fmt.Println(string(text), err)
	// Output: {"job_id":"7","refused":true,"reason":"on hold"} <nil>
}
