package faults

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FromKubernetes classifies an error of any Kubernetes API server: the
// management cluster, the garden, or a shoot. resource names what the call was
// about, such as "shoot garden-core/n-3f9ac21".
//
// nil and faults pass through, and so does context.Canceled: it says something
// of the caller, not of the API server.
func FromKubernetes(err error, resource string) error {
	if err == nil || As(err) != nil || errors.Is(err, context.Canceled) {
		return err
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		f := fromStatus(err, status.Status())
		f.Resource, f.Cause = resource, err
		return f
	}
	f := fromTransport(err)
	f.Resource, f.Cause = resource, err
	return f
}

// fromStatus classifies an answer of the API server.
func fromStatus(err error, s metav1.Status) *Fault {
	f := &Fault{Code: string(s.Reason), Message: redact(s.Message)}
	if f.Message == "" {
		f.Message = redact(err.Error())
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		f.RetryAt = time.Duration(seconds) * time.Second
	}
	switch s.Reason {
	case metav1.StatusReasonNotFound:
		f.Class = Gone
	case metav1.StatusReasonTooManyRequests, metav1.StatusReasonConflict:
		f.Class = Throttled
	case metav1.StatusReasonAlreadyExists:
		f.Class = Conflict
	case metav1.StatusReasonUnauthorized:
		f.Class = Auth
		return f.WithHint(OwnerOperator, "renew this control plane's kubeconfig for that API server; the operation goes on by itself")
	case metav1.StatusReasonForbidden:
		return forbidden(f, s)
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonMethodNotAllowed,
		metav1.StatusReasonNotAcceptable, metav1.StatusReasonUnsupportedMediaType, metav1.StatusReasonRequestEntityTooLarge:
		f.Class = Invalid
	default:
		// Timeout, ServerTimeout, InternalError, ServiceUnavailable, an expired
		// resource version, and whatever a proxy in between makes up.
		f.Class = byHTTPCode(s.Code)
		if webhookDown(s.Message) {
			f.Code = "WebhookUnreachable"
			return f.WithHint(OwnerOperator, "see why the webhook named in the message does not answer; the call is repeated")
		}
	}
	return f
}

// forbidden tells a quota, a namespace that goes away, a missing permission and
// an admission plugin's veto apart: all are answered with reason Forbidden.
func forbidden(f *Fault, s metav1.Status) *Fault {
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			if c.Type == "NamespaceTerminating" {
				f.Class, f.Code = Dependency, string(c.Type)
				return f.WithHint(OwnerOperator, "wait until the namespace is gone; the operation goes on by itself")
			}
		}
	}
	if strings.Contains(s.Message, "exceeded quota") {
		f.Class = Quota
		return f.WithHint(OwnerOperator, "raise the ResourceQuota named in the message, then retry")
	}
	if strings.Contains(s.Message, `User "`) && strings.Contains(s.Message, "cannot ") {
		f.Class = Auth
		return f.WithHint(OwnerOperator, "grant this control plane's account the permission named in the message; the operation goes on by itself")
	}
	// Admission: Gardener's plugins refuse a wrong spec this way, not as Invalid.
	f.Class = Invalid
	return f.WithHint(OwnerUser, "correct what the message names, then retry")
}

func byHTTPCode(code int32) Class {
	switch {
	case code == 429:
		return Throttled
	case code == 401 || code == 403:
		return Auth
	case code == 404:
		return Gone
	case code >= 400 && code < 500 && code != 408 && code != 410:
		return Invalid
	default:
		return Transient
	}
}

func webhookDown(message string) bool {
	return strings.Contains(message, "failed calling webhook") || strings.Contains(message, "failed to call webhook")
}

// fromTransport classifies an error that is no answer of the API server. All
// of them may pass: what cannot pass is answered.
func fromTransport(err error) *Fault {
	f := &Fault{Class: Transient, Message: redact(err.Error())}
	var netErr net.Error
	switch {
	case meta.IsNoMatchError(err):
		f.Code = "KindNotServed"
		return f.WithHint(OwnerOperator, "install the CRD or API service of that kind; the call is repeated")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		f.Code = "Timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Code = "ConnectionRefused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		f.Code = "ConnectionLost"
	default:
		f.Code = "Unreachable"
	}
	return f.WithHint(OwnerOperator, "see whether the API server is reachable; the call is repeated")
}
