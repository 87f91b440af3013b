package manifests

import (
	"fmt"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Object is one object of a rendered folder.
type Object struct {
	// Raw is what is applied.
	Raw *unstructured.Unstructured
	// Typed is the same as a value of Kubernetes' own type, or the operator's.
	Typed runtime.Object
}

// String names an object as kubectl does.
func (o Object) String() string { return o.Raw.GetKind() + "/" + o.Raw.GetName() }

// Set is what a folder renders to, in the order of applying.
type Set []Object

// Render renders a folder, and decodes each object.
func Render(folder string) (Set, error) {
	decoder, err := newDecoder()
	if err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // namespaces first, as kubectl does it
	rendered, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", folder, err)
	}
	var set Set
	for _, resource := range rendered.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("render %s: %w", folder, err)
		}
		object, err := decoder.decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %s %s: %w", folder, resource.GetKind(), resource.GetName(), err)
		}
		set = append(set, object)
	}
	return set, nil
}

// Decode decodes one document as Render does.
func Decode(text []byte) (Object, error) {
	decoder, err := newDecoder()
	if err != nil {
		return Object{}, err
	}
	return decoder.decode(text)
}

type decoder struct{ strict runtime.Decoder }

func newDecoder() (decoder, error) {
	scheme := runtime.NewScheme()
	if err := clientgo.AddToScheme(scheme); err != nil {
		return decoder{}, err
	}
	if err := monitoring.AddToScheme(scheme); err != nil {
		return decoder{}, err
	}
	return decoder{json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{Yaml: true, Strict: true})}, nil
}

func (d decoder) decode(text []byte) (Object, error) {
	typed, _, err := d.strict.Decode(text, nil, nil)
	if err != nil {
		return Object{}, err
	}
	var content map[string]any
	if err := yaml.Unmarshal(text, &content); err != nil {
		return Object{}, err
	}
	return Object{Raw: &unstructured.Unstructured{Object: content}, Typed: typed}, nil
}

// All returns the objects of one of Kubernetes' types, such as appsv1.Deployment.
func All[T any, P interface {
	*T
	runtime.Object
}](s Set) []P {
	var list []P
	for _, o := range s {
		if typed, ok := o.Typed.(P); ok {
			list = append(list, typed)
		}
	}
	return list
}

// Find returns an object by its kind and name, such as Deployment/licet, or nil.
func (s Set) Find(name string) *Object {
	for i := range s {
		if s[i].String() == name {
			return &s[i]
		}
	}
	return nil
}
