package handlers

// appender is an answer with an encoder of its own, whose output equals that of encode.
type appender interface{ appendJSON(to []byte) []byte }

// appendSuccess appends what encode makes of a successEnvelope around data.
func appendSuccess(to []byte, data appender) []byte {
	to = append(to, `{"code":0,"message":"success","data":`...)
	return append(data.appendJSON(to), "}\n"...)
}

// appendText appends a JSON string. It leaves strings with escapes or beyond ASCII
// to encode, so that only encode decides how to write them.
func appendText(to []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendUnusual(to, text)
		}
	}
	to = append(to, '"')
	to = append(to, text...)
	return append(to, '"')
}

func appendUnusual(to []byte, text string) []byte {
	encoded, err := encode(text)
	if err != nil {
		panic(err) // text always encodes
	}
	return append(to, encoded[:len(encoded)-len("\n")]...)
}

func appendOptional(to []byte, text *string) []byte {
	if text == nil {
		return append(to, "null"...)
	}
	return appendText(to, *text)
}
