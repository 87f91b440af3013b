package receipt

import (
	"encoding/json"
	"encoding/pem"
	"strings"
)

// The types of armored texts, which carry documents to and from a device without network. Each is a text of the form of
// RFC 7468: lines of base64 between a line that begins and a line that ends the text.
const (
	requestArmor = "LICET REQUEST"
	fileArmor    = "LICET RECEIPT"
	releaseArmor = "LICET RELEASE"
)

// maxArmored is the longest armored text, in characters: twice a receipt and a set of keys.
const maxArmored = 4 * maxReceipt

// maxRelease is the longest release that a device makes, in characters: as a member of JSON, where each line break
// takes two characters, it fits into the 16 KiB of a request.
const maxRelease = 16000

func armor(kind string, content any) (string, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: text})), nil
}

// disarm decodes the only armored text of a kind in a text. Around it there may be other lines, as in an e-mail.
func disarm(kind, text string, content any) error {
	if len(text) > maxArmored {
		return refuse(Malformed, "longer than %d characters", maxArmored)
	}
	block, rest := pem.Decode([]byte(text))
	switch {
	case block == nil:
		return refuse(Malformed, "there is no text from -----BEGIN %s----- to -----END %s-----", kind, kind)
	case block.Type != kind:
		return refuse(Type, "this is a %s, not a %s", strings.ToLower(block.Type), strings.ToLower(kind))
	case len(block.Headers) > 0:
		return refuse(Malformed, "the armored text has headers")
	}
	if more, _ := pem.Decode(rest); more != nil {
		return refuse(Malformed, "there are two armored texts")
	}
	return decode(block.Bytes, content)
}
