#if HTTPCache
internal import Foundation
internal import HTTPTypes

/// The stored responses that match a request, and the one among them that could answer it.
struct Selection {
  /// The positions of the responses whose selecting fields match, the most recent one first.
  var matching: [Int] = []

  /// The most recent response that could answer the request, and the form of the answer.
  var chosen: (position: Int, answer: Answer)?

  /// The most recent response that could answer the request once these bytes are fetched.
  var completable: (position: Int, missing: Range<Int64>)?

  /// Selects among the stored responses for the URL of a request (RFC 9111, section 4.1).
  init(
    _ stored: [StoredResponse], request: RequestFacts, fields: HTTPFields, isHead: Bool, _ rules: HTTPCacheRules
  ) {
    var values = RequestValues(fields)
    matching = stored.indices.filter { stored[$0].selecting.matches(&values) }
    if matching.count > 1 {
      matching.sort { left, right in
        let (one, other) = (stored[left], stored[right])
        return (one.dateOrReceipt, one.responseTime) > (other.dateOrReceipt, other.responseTime)
      }
    }
    for position in matching {
      switch rules.form(of: stored[position], for: request, isHead: isHead) {
      case .answer(let answer):
        chosen = (position, answer)
        return
      case .missing(let bytes):
        if completable == nil { completable = (position, bytes) }
      case .none: break
      }
    }
  }
}
#endif
