package layout

import "licet/licensing"

// metadataTable lists the fields of a license's metadata. unknown has the fields of a newer format, to be kept.
func metadataTable(m *licensing.Metadata, unknown *[]byte) fieldTable {
	return fieldTable{textField(1, &m.Object), textField(2, &m.ExternalKey), textField(3, &m.ReissueReason),
		textField(4, &m.Entitlements), textField(5, &m.BuyerEmail), textField(6, &m.Reference), unknownFields(unknown)}
}

// EncodeMetadata returns the value of a license's metadata; nil if there is nothing to store.
func EncodeMetadata(m licensing.Metadata, unknown []byte) []byte {
	value := metadataTable(&m, &unknown).value()
	if len(value) == 1 {
		return nil
	}
	return value
}

// DecodeMetadata decodes the value of a license's metadata.
func DecodeMetadata(value []byte) (m licensing.Metadata, unknown []byte, err error) {
	err = DecodeValue(value, metadataTable(&m, &unknown).read)
	return m, unknown, err
}
