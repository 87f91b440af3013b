package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// TrialWriter is the number of the repeated field with the writers of a trial.
const TrialWriter protowire.Number = 15

// Trial is the value of a trial. The name, the account and the mode are in the key.
type Trial struct {
	Trial   licensing.Trial
	Writers []Writer
}

func (s *Trial) table() fieldTable {
	return fieldTable{
		{1, licenseKeyVar{&s.Trial.License}}, arrayField(2, s.Trial.Device[:]), writersField(TrialWriter, &s.Writers),
	}
}

// Encode returns the value of a trial.
func (s *Trial) Encode() []byte { return s.table().value() }

// DecodeTrial decodes the value of a trial.
func DecodeTrial(value []byte) (*Trial, error) {
	s := &Trial{}
	err := DecodeValue(value, s.table().read)
	if err == nil && s.Trial.License.IsZero() {
		err = ErrMalformed
	}
	return s, err
}
