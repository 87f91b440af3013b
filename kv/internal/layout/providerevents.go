package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/node/store"
)

func providerEventsTable(e *store.ProviderEvents) fieldTable {
	return fieldTable{timeField(1, &e.From), timeField(2, &e.To), textField(3, &e.After), timeField(4, &e.Next),
		againField(5, &e.Again), textField(6, &e.Key)}
}

// againVar is a repeated field with the objects to ask about again.
type againVar struct {
	at    *[]store.ProviderEventAgain
	one   store.ProviderEventAgain // that is being written or read
	table fieldTable               // of one
}

func againField(num protowire.Number, at *[]store.ProviderEventAgain) tableField {
	v := &againVar{at: at}
	v.table = fieldTable{textField(1, &v.one.Kind), textField(2, &v.one.ID), timeField(3, &v.one.Since),
		numberField(4, &v.one.Tries), textField(5, &v.one.AccountID)}
	return tableField{num, v}
}

func (v *againVar) write(b []byte, num protowire.Number) []byte {
	for _, v.one = range *v.at {
		b = appendMessage(b, num, v.table)
	}
	return b
}

func (v *againVar) read(f Field) error {
	v.one = store.ProviderEventAgain{}
	err := decodeMessage(f.Bytes, v.table.read)
	*v.at = append(*v.at, v.one)
	return err
}

// EncodeProviderEvents returns the value.
func EncodeProviderEvents(e store.ProviderEvents) []byte { return providerEventsTable(&e).value() }

// DecodeProviderEvents decodes the value.
func DecodeProviderEvents(value []byte) (store.ProviderEvents, error) {
	e := store.ProviderEvents{}
	err := DecodeValue(value, providerEventsTable(&e).read)
	if err == nil && len(e.Again) > store.MaxProviderEventsAgain {
		err = ErrMalformed
	}
	return e, err
}
