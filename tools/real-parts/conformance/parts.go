//go:build parts

// Package parts names Kubernetes' conformance suite, its runner and programs of its images, so that go.mod and go.sum cover all they import.
package parts

import (
	_ "github.com/onsi/ginkgo/v2/ginkgo"
	_ "k8s.io/kubernetes/test/e2e"
	_ "k8s.io/kubernetes/test/images/agnhost"
	_ "k8s.io/sample-apiserver"
)
