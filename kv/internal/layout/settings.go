package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// SettingsWriter is the number of the repeated field with the writers of settings.
const SettingsWriter protowire.Number = 15

// Settings is the value of an owner's settings. The owner's account and mode are in the key.
type Settings struct {
	Settings licensing.Settings
	Writers  []Writer
	Unknown  []byte // fields of a newer format, to be kept
}

func (s *Settings) table() fieldTable {
	return fieldTable{
		textField(1, &s.Settings.ExternalKeys),
		boolField(2, &s.Settings.KeysFixed),
		textField(3, &s.Settings.ChosenDays),
		boolField(4, &s.Settings.DaysChosen),
		writersField(SettingsWriter, &s.Writers),
		unknownFields(&s.Unknown),
	}
}

// Encode returns the value of settings.
func (s *Settings) Encode() []byte { return s.table().value() }

// DecodeSettings decodes the value of an owner's settings.
func DecodeSettings(owner licensing.Owner, value []byte) (*Settings, error) {
	s := &Settings{Settings: licensing.Settings{Owner: owner}}
	return s, DecodeValue(value, s.table().read)
}
