#if HTTPCache
internal import Foundation
internal import HTTPTypes

/// The values of a response's fields that the rules need, parsed once.
struct ResponseFacts: Sendable {
  /// Parses the fields of a response.
  init(_ fields: HTTPFields) {
  }
}
#endif
