package apidoc

import (
	"reflect"
	"slices"
	"strings"

	"licet/handlers"
	"licet/internal/apidoc/openapi"
	"licet/licensing"
	"licet/node/store"
)

// schemas contains the schemas that other parts of the document refer to.
type schemas struct {
	all   *openapi.Map[*openapi.Schema]
	types map[string]reflect.Type // of the schemas that were made of types, by name
}

// add adds a schema, and returns a reference to it.
func (s *schemas) add(name string, schema *openapi.Schema) *openapi.Schema {
	s.all.Set(name, schema)
	return reference(name)
}

func reference(name string) *openapi.Schema {
	return &openapi.Schema{Ref: "#/components/schemas/" + name}
}

// ofAnswer returns a reference to the schema of a struct that responses contain.
func (s *schemas) ofAnswer(typ reflect.Type) *openapi.Schema {
	name := nameOf(typ)
	if known := s.types[name]; known != nil {
		if known != typ {
			panic("two types have the schema " + name)
		}
		return reference(name)
	}
	s.types[name] = typ
	schema := &openapi.Schema{Type: []string{"object"}, Properties: new(openapi.Map[*openapi.Schema])}
	s.all.Set(name, nil) // before the schemas of its members
	for _, field := range reflect.VisibleFields(typ) {
		member, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous || member == "" || member == "-" {
			continue
		}
		schema.Properties.Set(member, s.ofMember(name, member, field.Type))
		if options != "omitempty" {
			schema.Required = append(schema.Required, member)
		}
	}
	return s.add(name, schema)
}

// ofFile returns the schema of an answer without the envelope, with a media type of its own.
func (s *schemas) ofFile(r *handlers.Route) *openapi.Schema {
	switch {
	case r.Media != "application/json":
		return &openapi.Schema{Type: []string{"string"}}
	case r.Response.Name() == "document": // the route does not say what the document contains
		return object()
	}
	return s.ofAnswer(r.Response)
}

// nameOf returns the name of the schema of a type.
func nameOf(typ reflect.Type) string { return strings.ToUpper(typ.Name()[:1]) + typ.Name()[1:] }

// alwaysSet are the members with a time that is never null. The device of an event may not be bound.
func alwaysSet() []string {
	return []string{"created_at", "started_at", "timestamp", "at"}
}

// ofMember returns the schema of a member of a schema of responses.
func (s *schemas) ofMember(of, name string, typ reflect.Type) *openapi.Schema {
	if typ.Kind() == reflect.Pointer {
		if typ.Elem().Name() == "failureEnvelope" {
			return reference("Failure")
		}
		if typ.Elem().Kind() == reflect.Struct {
			return s.ofAnswer(typ.Elem())
		}
		var schema *openapi.Schema
		if typ.Elem().Kind() == reflect.Slice {
			schema = s.ofMember("", "", typ.Elem())
		} else {
			schema = s.scalar(name, typ.Elem())
		}
		schema.Type = append(schema.Type, "null")
		if schema.Enum != nil {
			schema.Enum = append(schema.Enum, nil)
		}
		return described(of, name, schema)
	}
	if typ.Name() == "timestamp" {
		schema := &openapi.Schema{Type: []string{"string"}, Format: "date-time"}
		if !slices.Contains(alwaysSet(), name) {
			schema.Type = append(schema.Type, "null")
		}
		return described(of, name, schema)
	}
	switch {
	case typ.Name() == "RawMessage" && name == "data":
		return reference("EventData")
	case typ.Name() == "RawMessage":
		return described(of, name, object())
	case typ.Kind() == reflect.Struct:
		return s.ofAnswer(typ)
	case typ.Kind() == reflect.Slice:
		return described(of, name, &openapi.Schema{Type: []string{"array"}, Items: s.ofMember("", "", typ.Elem())})
	}
	return described(of, name, s.scalar(name, typ))
}

// object returns the schema of an object with any members.
func object() *openapi.Schema {
	return &openapi.Schema{
		Type: []string{"object"}, AdditionalProperties: true,
	}
}

// scalar returns the schema of a text, a number or a truth value. Later versions may add values to the words of a type,
// as they may add members.
func (s *schemas) scalar(name string, typ reflect.Type) *openapi.Schema {
	switch typ.Kind() {
	case reflect.Bool:
		return &openapi.Schema{Type: []string{"boolean"}}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return &openapi.Schema{Type: []string{"integer"}, Format: "int64"}
	}
	schema := &openapi.Schema{Type: []string{"string"}}
	switch typ {
	case reflect.TypeFor[licensing.Mode]():
		schema.Enum = words([]licensing.Mode{licensing.Test, licensing.Live})
	case reflect.TypeFor[licensing.Status]():
		schema.Enum = words(licensing.Statuses())
	case reflect.TypeFor[licensing.OrderStatus]():
		schema.Enum = words(licensing.OrderStatuses())
	case reflect.TypeFor[licensing.SubscriptionStatus]():
		schema.Enum = words(licensing.SubscriptionStatuses())
	case reflect.TypeFor[licensing.RolloutStatus]():
		schema.Enum = words([]licensing.RolloutStatus{
			licensing.RolloutRunning, licensing.RolloutPaused, licensing.RolloutDone, licensing.RolloutCanceled,
		})
	case reflect.TypeFor[licensing.APIKeyStatus]():
		schema.Enum = words([]licensing.APIKeyStatus{
			licensing.APIKeyActive, licensing.APIKeyExpired, licensing.APIKeyRevoked,
		})
	case reflect.TypeFor[store.DeliveryStatus]():
		schema.Enum = words([]store.DeliveryStatus{store.DeliveryPending, store.DeliveryDead, store.DeliveryDelivered})
	case reflect.TypeFor[licensing.EventType]():
		schema.Enum = words(append(licensing.EventTypes(), pingType))
	case reflect.TypeFor[licensing.Reason](): // of a validation
		schema.Enum = words([]licensing.Reason{
			licensing.ReasonProductMismatch, licensing.ReasonLicenseRevoked, licensing.ReasonLicenseSuspended,
			licensing.ReasonLicenseExpired, licensing.NotBound,
		})
	}
	switch {
	case typ.Name() == "endpointStatus":
		schema.Enum = words([]string{"enabled", "disabled"})
	case name == "pay_url", name == "success_url", name == "url":
		schema.Format = "uri"
	}
	return schema
}

// pingType is the type of the messages that test an endpoint.
const pingType licensing.EventType = "webhook.ping"

// described returns a schema with the description of its member.
func described(of, name string, schema *openapi.Schema) *openapi.Schema {
	schema.Description = description(of, name)
	return schema
}

// description returns the description of a member of a schema, or of a parameter of an operation; empty: none.
func description(of, name string) string {
	all := members()
	if own, has := all[of+"."+name]; has {
		return own
	}
	return all[name]
}
