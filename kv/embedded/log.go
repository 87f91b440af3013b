package embedded

import (
	"context"
	"strings"

	"github.com/rs/zerolog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// etcdLog passes on etcd's log lines, warnings and above. Of the fields it passes on only the error: other fields show
// requests.
type etcdLog struct {
	log zerolog.Logger
	// level is the lowest level that is logged. It is raised while etcd starts: etcd then warns of settings that are
	// chosen on purpose, and returns its errors. It is raised while etcd is closed: the ends of its listeners would
	// count as errors.
	level zap.AtomicLevel
	err   string // from With
	// fatal receives fatal entries and panics. They are not logged: the process ends with their message.
	fatal *failure
}

func newEtcdLog(log zerolog.Logger) *etcdLog {
	return &etcdLog{
		log:   log.With().Str("component", "etcd").Logger(),
		level: zap.NewAtomicLevelAt(zapcore.DPanicLevel),
		fatal: newFailure(),
	}
}

// zap returns a logger for etcd. After a fatal entry or a panic, it stops the goroutine; see failure.
func (b *etcdLog) zap() *zap.Logger {
	return zap.New(b, zap.WithFatalHook(b.fatal), zap.WithPanicHook(b.fatal))
}

// Enabled is part of zapcore.Core.
func (b *etcdLog) Enabled(level zapcore.Level) bool { return b.level.Enabled(level) }

// With is part of zapcore.Core.
func (b *etcdLog) With(fields []zapcore.Field) zapcore.Core {
	with := *b
	if text := errorOf(fields); text != "" {
		with.err = text
	}
	return &with
}

// Check is part of zapcore.Core.
func (b *etcdLog) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if b.Enabled(entry.Level) {
		return checked.AddCore(entry, b)
	}
	return checked
}

// tooEarly is etcd's message if it asks for the version of a new store's data before there is any. It asks again every
// few seconds.
const tooEarly = "missing term information"

// Write is part of zapcore.Core.
func (b *etcdLog) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	level := zerolog.WarnLevel
	if entry.Level >= zapcore.ErrorLevel {
		level = zerolog.ErrorLevel
	}
	if entry.Level > zapcore.DPanicLevel {
		level = zerolog.DebugLevel // the process ends with this message
	}
	text := errorOf(fields)
	if text == "" {
		text = b.err
	}
	if strings.Contains(text, tooEarly) || strings.HasSuffix(text, context.Canceled.Error()) { // the client gave up
		level = zerolog.DebugLevel
	}
	event := b.log.WithLevel(level)
	if text != "" {
		event = event.Str(zerolog.ErrorFieldName, text)
	}
	event.Msg(entry.Message)
	return nil
}

// Sync is part of zapcore.Core.
func (b *etcdLog) Sync() error { return nil }

func errorOf(fields []zapcore.Field) string {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Key == "error" && f.Type == zapcore.ErrorType {
			return err.Error()
		}
	}
	return ""
}
