// Command cel evaluates CEL expressions as kube-apiserver v1.36 does, for the differential tests of podlife.api.cel.
//
// It reads one case of JSON per line and writes one answer of JSON per line. With -declarations it prints the
// functions that the base environment declares instead.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type testCase struct {
	Expr   string          `json:"expr"`
	Schema json.RawMessage `json:"schema,omitempty"`
	Root   bool            `json:"root,omitempty"`
	Self   any             `json:"self,omitempty"`
	Dyn    map[string]any  `json:"dyn,omitempty"`
	Limit  uint64          `json:"limit,omitempty"`
}

type answer struct {
	CompileError string  `json:"compileError,omitempty"`
	Type         string  `json:"type,omitempty"`
	EstimatedMin uint64  `json:"estimatedMin"`
	EstimatedMax uint64  `json:"estimatedMax"`
	Value        any     `json:"value"`
	Error        string  `json:"error,omitempty"`
	Cost         *uint64 `json:"cost,omitempty"`
}

// sizes bounds values by the schema, as the validation of a CRD does.
type sizes struct{ root *apiservercel.DeclType }

func (s *sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	path := element.Path()
	if s.root == nil || len(path) == 0 || path[0] != "self" {
		return nil
	}
	current := s.root
	for _, name := range path[1:] {
		switch name {
		case "@items", "@values":
			if current.ElemType == nil {
				return nil
			}
			current = current.ElemType
		case "@keys":
			if current.KeyType == nil {
				return nil
			}
			current = current.KeyType
		default:
			field, ok := current.Fields[name]
			if !ok {
				return nil
			}
			current = field.Type
		}
		if current == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(current.MaxElements)}
}

func (s *sizes) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	return nil
}

func evaluate(c testCase) answer {
	base := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).NewExpressionsEnv()
	var options []cel.EnvOption
	variables := map[string]any{}
	var root *apiservercel.DeclType
	if c.Schema != nil {
		props := &apiextensionsv1.JSONSchemaProps{}
		must(json.Unmarshal(c.Schema, props))
		internal := &apiextensions.JSONSchemaProps{}
		must(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil))
		structural, err := structuralschema.NewStructural(internal)
		must(err)
		root = model.SchemaDeclType(structural, c.Root)
		if root == nil {
			return answer{CompileError: "schema has no type"}
		}
		root = root.MaybeAssignTypeName("selfType")
		provider := apiservercel.NewDeclTypeProvider(root)
		providerOptions, err := provider.EnvOptions(base.CELTypeProvider())
		must(err)
		options = append(options, providerOptions...)
		options = append(options, cel.Variable("self", root.CelType()))
		variables["self"] = common.UnstructuredToVal(c.Self, &model.Structural{Structural: structural})
	}
	for name, value := range c.Dyn {
		options = append(options, cel.Variable(name, cel.DynType))
		variables[name] = value
	}
	env, err := base.Extend(options...)
	must(err)
	checked, issues := env.Compile(c.Expr)
	if issues != nil {
		return answer{CompileError: issues.String()}
	}
	result := answer{Type: cel.FormatCELType(checked.OutputType())}
	estimate, err := env.EstimateCost(checked, &library.CostEstimator{SizeEstimator: &sizes{root}})
	must(err)
	result.EstimatedMin, result.EstimatedMax = estimate.Min, estimate.Max
	programOptions := []cel.ProgramOption{
		cel.CostTracking(&library.CostEstimator{}),
		cel.CostTrackerOptions(interpreter.PresenceTestHasCost(false)),
		cel.InterruptCheckFrequency(100),
	}
	if c.Limit > 0 {
		programOptions = append(programOptions, cel.CostLimit(c.Limit))
	}
	program, err := env.Program(checked, programOptions...)
	if err != nil {
		result.Error = "instantiation: " + err.Error()
		return result
	}
	value, details, err := program.ContextEval(context.Background(), variables)
	if details != nil {
		result.Cost = details.ActualCost()
	}
	if err != nil {
		result.Error = err.Error()
		return result
	}
	result.Value = plain(value)
	return result
}

func plain(value ref.Val) any {
	switch v := value.(type) {
	case types.Bool:
		return bool(v)
	case types.Int:
		return int64(v)
	case types.Uint:
		return map[string]any{"uint": uint64(v)}
	case types.Double:
		return map[string]any{"double": fmt.Sprint(float64(v))}
	case types.String:
		return string(v)
	case types.Bytes:
		return map[string]any{"bytes": fmt.Sprintf("%x", []byte(v))}
	case types.Null:
		return nil
	case types.Duration:
		return map[string]any{"duration": int64(v.Duration)}
	case types.Timestamp:
		return map[string]any{"timestamp": v.Time.UTC().Format("2006-01-02T15:04:05.999999999Z07:00")}
	case *types.Optional:
		if !v.HasValue() {
			return map[string]any{"optional": nil}
		}
		return map[string]any{"optional": []any{plain(v.GetValue())}}
	case *types.Type:
		return map[string]any{"type": v.TypeName()}
	case traits.Lister:
		items := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			items = append(items, plain(it.Next()))
		}
		return items
	case traits.Mapper:
		entries := [][2]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			entries = append(entries, [2]any{plain(key), plain(v.Get(key))})
		}
		sort.Slice(entries, func(i, j int) bool { return fmt.Sprint(entries[i][0]) < fmt.Sprint(entries[j][0]) })
		return map[string]any{"map": entries}
	}
	return map[string]any{"object": value.Type().TypeName()}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func declarations() {
	env := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).NewExpressionsEnv()
	names := []string{}
	for name := range env.Functions() {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		columns := []string{name}
		for _, overload := range env.Functions()[name].OverloadDecls() {
			arguments := []string{}
			for _, argument := range overload.ArgTypes() {
				arguments = append(arguments, cel.FormatCELType(argument))
			}
			style := "global"
			if overload.IsMemberFunction() {
				style = "member"
			}
			result := cel.FormatCELType(overload.ResultType())
			columns = append(columns, strings.Join([]string{overload.ID(), style, strings.Join(arguments, "; "), result}, "|"))
		}
		fmt.Println(strings.Join(columns, "\t"))
	}
}

func main() {
	list := flag.Bool("declarations", false, "print the functions of the base environment")
	flag.Parse()
	if *list {
		declarations()
		return
	}
	reader := bufio.NewReaderSize(os.Stdin, 1<<20)
	writer := json.NewEncoder(os.Stdout)
	writer.SetEscapeHTML(false)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 1 {
			c := testCase{}
			decoder := json.NewDecoder(strings.NewReader(string(line)))
			decoder.UseNumber()
			must(decoder.Decode(&c))
			c.Self = numbers(c.Self)
			for name, value := range c.Dyn {
				c.Dyn[name] = numbers(value)
			}
			must(writer.Encode(evaluate(c)))
		}
		if err != nil {
			return
		}
	}
}

// numbers makes int64 and float64 of JSON numbers, as the API machinery does.
func numbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole
		}
		float, _ := v.Float64()
		return float
	case map[string]any:
		for key, item := range v {
			v[key] = numbers(item)
		}
	case []any:
		for i, item := range v {
			v[i] = numbers(item)
		}
	}
	return value
}
