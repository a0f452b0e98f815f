// Command schema-types prints, as JSON, how Kubernetes' own Go types decode and encode: every field with its
// type, its numbers in protobuf, whether it is a pointer, whether it is left out when empty, and how it is patched.
// The OpenAPI document knows less (no pointers, no numbers), and what the API server does depends on it.
//
// Run by tools/generate_schema.py inside the module of tools/real-parts.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var roots = map[string][]any{
	"v1": {
		corev1.Binding{}, corev1.ConfigMap{}, corev1.Endpoints{}, corev1.Event{}, corev1.LimitRange{}, corev1.Namespace{}, corev1.Node{},
		corev1.PersistentVolume{}, corev1.PersistentVolumeClaim{}, corev1.Pod{}, corev1.PodAttachOptions{},
		corev1.PodExecOptions{}, corev1.PodTemplate{},
		corev1.ReplicationController{}, corev1.ResourceQuota{}, corev1.Secret{}, corev1.Service{}, corev1.ServiceAccount{},
		metav1.DeleteOptions{}, metav1.Status{},
	},
	"admissionregistration.k8s.io/v1": {
		admissionregistrationv1.MutatingAdmissionPolicy{}, admissionregistrationv1.MutatingAdmissionPolicyBinding{},
		admissionregistrationv1.MutatingWebhookConfiguration{},
		admissionregistrationv1.ValidatingAdmissionPolicy{}, admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
		admissionregistrationv1.ValidatingWebhookConfiguration{},
	},
	"apps/v1": {
		appsv1.ControllerRevision{}, appsv1.DaemonSet{}, appsv1.Deployment{}, appsv1.ReplicaSet{}, appsv1.StatefulSet{},
	},
	"batch/v1":                  {batchv1.CronJob{}, batchv1.Job{}},
	"autoscaling/v1":            {autoscalingv1.HorizontalPodAutoscaler{}, autoscalingv1.Scale{}},
	"autoscaling/v2":            {autoscalingv2.HorizontalPodAutoscaler{}},
	"apiregistration.k8s.io/v1": {apiregistrationv1.APIService{}},
	"networking.k8s.io/v1":      {
		networkingv1.Ingress{}, networkingv1.IngressClass{}, networkingv1.IPAddress{}, networkingv1.NetworkPolicy{},
		networkingv1.ServiceCIDR{},
	},
	"node.k8s.io/v1":            {nodev1.RuntimeClass{}},
	"scheduling.k8s.io/v1":      {schedulingv1.PriorityClass{}},
	"storage.k8s.io/v1": {
		storagev1.CSIDriver{}, storagev1.CSINode{}, storagev1.CSIStorageCapacity{}, storagev1.StorageClass{},
		storagev1.VolumeAttachment{}, storagev1.VolumeAttributesClass{},
	},
	"certificates.k8s.io/v1":    {certificatesv1.CertificateSigningRequest{}},
	"discovery.k8s.io/v1":       {discoveryv1.EndpointSlice{}},
	"coordination.k8s.io/v1":    {coordinationv1.Lease{}},
	"policy/v1":                 {policyv1.Eviction{}, policyv1.PodDisruptionBudget{}},
	"events.k8s.io/v1":          {eventsv1.Event{}},
	"rbac.authorization.k8s.io/v1": {
		rbacv1.ClusterRole{}, rbacv1.ClusterRoleBinding{}, rbacv1.Role{}, rbacv1.RoleBinding{},
	},
	"resource.k8s.io/v1": {
		resourcev1.DeviceClass{}, resourcev1.ResourceClaim{}, resourcev1.ResourceClaimTemplate{}, resourcev1.ResourceSlice{},
	},
	"flowcontrol.apiserver.k8s.io/v1": {
		flowcontrolv1.FlowSchema{}, flowcontrolv1.PriorityLevelConfiguration{},
	},
	"apiextensions.k8s.io/v1": {apiextensionsv1.CustomResourceDefinition{}},
	"authorization.k8s.io/v1": {
		authorizationv1.LocalSubjectAccessReview{}, authorizationv1.SelfSubjectAccessReview{},
		authorizationv1.SelfSubjectRulesReview{}, authorizationv1.SubjectAccessReview{},
	},
	"authentication.k8s.io/v1": {
		authenticationv1.SelfSubjectReview{}, authenticationv1.TokenRequest{}, authenticationv1.TokenReview{},
	},
}

// Types that decode themselves, by the letter the table uses for them.
var leaves = map[string]string{
	"v1.Time":              "T",
	"v1.MicroTime":         "M",
	"resource.Quantity":    "Q",
	"intstr.IntOrString":   "I",
	"runtime.RawExtension": "R",
	"v1.FieldsV1":          "R",
	"v1.JSON":              "R",
	// Refers to itself; podlife.api.structural decodes it. Its fields are printed too, for protobuf.
	"v1.JSONSchemaProps": "P",
}

type field struct {
	Name     string `json:"n"`
	Type     string `json:"t"`
	Numbers  []int  `json:"#"`
	GoType   string `json:"g"`
	Embedded string `json:"e,omitempty"`
	Pointer  bool   `json:"p,omitempty"`
	Keep     bool   `json:"k,omitempty"`
	Strategy string `json:"s,omitempty"`
	MergeKey string `json:"m,omitempty"`
}

var types = map[string][]field{}

func keyOf(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	group, version := parts[len(parts)-2], parts[len(parts)-1]
	if version != "v1" && strings.HasPrefix(version, "v") {
		// A group may have types of one name in several versions.
		group += version
	}
	return group + "." + t.Name()
}

func typeOf(t reflect.Type) string {
	if leaf, ok := leaves[t.String()]; ok {
		return leaf
	}
	switch t.Kind() {
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Int32:
		return "i"
	case reflect.Int64:
		return "l"
	case reflect.Float64:
		return "f"
	case reflect.Pointer:
		return typeOf(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
		return "[" + typeOf(t.Elem())
	case reflect.Map:
		return "{" + typeOf(t.Elem())
	case reflect.Struct:
		walk(t)
		return "@" + keyOf(t)
	}
	panic(fmt.Sprintf("no letter for %s", t))
}

func walk(t reflect.Type) {
	if _, seen := types[keyOf(t)]; seen {
		return
	}
	types[keyOf(t)] = nil
	types[keyOf(t)] = fieldsOf(t, "", nil)
}

// fieldsOf gives the fields of a struct as JSON shows them: those of embedded structs are its own. In protobuf they
// are messages inside it, so the numbers of a field are the way to it.
func fieldsOf(t reflect.Type, embedded string, way []int) []field {
	var found []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || f.PkgPath != "" {
			continue
		}
		numbers := slices.Clone(way)
		if number, ok := numberOf(f); ok {
			numbers = append(numbers, number)
		}
		if name == "" && !f.Anonymous {
			// One of several in JSON, by a method of its own.
			_, name, _ = strings.Cut(f.Tag.Get("protobuf"), "name=")
		}
		if name == "" {
			found = append(found, fieldsOf(f.Type, strings.TrimPrefix(embedded+"."+f.Name, "."), numbers)...)
			continue
		}
		one := field{Name: name, Type: typeOf(f.Type), Numbers: numbers, Embedded: embedded}
		one.Pointer = f.Type.Kind() == reflect.Pointer
		one.GoType = strings.TrimPrefix(f.Type.String(), "*")
		one.Keep = keeps(f.Type, options)
		one.Strategy = f.Tag.Get("patchStrategy")
		one.MergeKey = f.Tag.Get("patchMergeKey")
		found = append(found, one)
	}
	return found
}

func numberOf(f reflect.StructField) (int, bool) {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0, false
	}
	number, err := strconv.Atoi(parts[1])
	return number, err == nil
}

// keeps says whether the field is written even when it holds nothing: it is not marked omitempty, or it is a
// struct, which is never empty to Go.
func keeps(t reflect.Type, options string) bool {
	if strings.Contains(options, "omitzero") {
		return false
	}
	return !strings.Contains(options, "omitempty") || t.Kind() == reflect.Struct
}

func main() {
	kinds := map[string]map[string]string{}
	walk(reflect.TypeOf(apiextensionsv1.JSONSchemaProps{}))
	for version, objects := range roots {
		kinds[version] = map[string]string{}
		for _, object := range objects {
			t := reflect.TypeOf(object)
			walk(t)
			kinds[version][t.Name()] = keyOf(t)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"kinds": kinds, "types": types}); err != nil {
		panic(err)
	}
}
