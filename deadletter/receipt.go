package deadletter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Receipt says what became of one job. Its JSON is Document, which is what an
// apply's action shows under "dead_letter".
type Receipt struct {
	JobID    string // the key in its text form
	Refused  bool   // the mover left the job alone
	Reason   string // why, when refused
	Document json.RawMessage
}

// NewReceipt makes the receipt of a job from a JSON object, and reads "refused"
// and "reason" from it. The object is kept whole.
func NewReceipt(jobID string, document []byte) (Receipt, error) {
	var receipt Receipt
	if err := receipt.UnmarshalJSON(document); err != nil {
		return Receipt{}, fmt.Errorf("deadletter: receipt of job %q: %w", jobID, err)
	}
	receipt.JobID = jobID
	return receipt, nil
}

// Refuse makes the receipt of a job that the mover leaves in the queue.
func Refuse(jobID, reason string) Receipt {
	return Receipt{JobID: jobID, Refused: true, Reason: reason}
}

// MarshalJSON returns Document, or the refusal when there is none.
func (r Receipt) MarshalJSON() ([]byte, error) {
	if len(r.Document) > 0 {
		return r.Document, nil
	}
	return json.Marshal(struct {
		JobID   string `json:"job_id"`
		Refused bool   `json:"refused"`
		Reason  string `json:"reason,omitempty"`
	}{r.JobID, r.Refused, r.Reason})
}

// UnmarshalJSON takes any JSON object as the document. JobID, Refused and Reason
// are its "job_id", "refused" and "reason", spelled just so.
func (r *Receipt) UnmarshalJSON(document []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(document, &fields); err != nil {
		return err
	}
	if fields == nil {
		return errors.New("null is not an object")
	}
	receipt := Receipt{JobID: text(fields["job_id"]), Reason: text(fields["reason"])}
	if refused, ok := fields["refused"]; ok {
		if err := json.Unmarshal(refused, &receipt.Refused); err != nil {
			return err
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, document); err != nil {
		return err
	}
	receipt.Document = compact.Bytes()
	*r = receipt
	return nil
}

// text returns a JSON string's content, and any other value as it is written.
func text(value json.RawMessage) string {
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return string(value)
	}
	return s
}
