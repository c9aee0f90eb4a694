#if HTTPCache
public import HTTPTypes

/// A stored response that answers a request.
public struct Reuse: Sendable {
  /// The form in which a stored response answers a request.
  public enum Answer: Sendable, Equatable {
    /// The whole response.
    case whole

    /// The head alone, for `HEAD`.
    case headOnly

    /// 304, because the client has the response.
    case notModified

    /// 206 with these bytes.
    case partial(Range<Int64>)

    /// 416, because no byte of the range exists.
    case rangeNotSatisfiable
  }

  /// The position of the stored response in the list that was given.
  public var position: Int

  /// The stored response, with the head that a validation updated.
  public var response: StoredResponse

  /// The form of the answer.
  public var answer: Answer

  /// The age of the response in seconds.
  public var age: Double

  /// The handling so far.
  public var status: CacheStatus

  /// The name of the cache in `Cache-Status`, or `nil` for no such field.
  public var cacheName: String?

  /// The request that refreshes the response in the background, for `stale-while-revalidate`.
  public var refresh: Exchange?

  /// The bytes of the representation in the answer's body.
  ///
  /// `nil` for no body, or for the whole of a body whose length isn't known yet.
  public var bodyRange: Range<Int64>? {
    switch answer {
    case .whole: response.length.map { 0..<$0 }
    case .partial(let range): range
    case .headOnly, .notModified, .rangeNotSatisfiable: nil
    }
  }

  /// A Boolean value that indicates whether the answer has a body.
  public var hasBody: Bool {
    switch answer {
    case .whole, .partial: true
    case .headOnly, .notModified, .rangeNotSatisfiable: false
    }
  }
}

extension Reuse {
  /// The fields that describe the representation, which a 304 doesn't repeat (RFC 9110, section 15.4.5).
  private static let representationFields: Set = [
    "content-encoding", "content-language", "content-length", "content-md5", "content-range", "content-type",
  ]

  /// The fields of a 416.
  ///
  /// It isn't the stored representation, and so has hardly any of its fields.
  private static let rangeErrorFields: Set = ["accept-ranges", "cache-status", "date", "server"]

  /// The head for the client, with `Age`, `Cache-Status`, `Content-Length` and `Content-Range`.
  public var head: HTTPResponse {
    var head = HTTPResponse(status: .init(code: response.status), headerFields: response.fields)
    switch answer {
    case .whole, .headOnly:
      if let length = response.length, response.status != 204 { head.headerFields[.contentLength] = "\(length)" }
    case .partial(let range):
      head.status = .partialContent
      head.headerFields[.contentRange] = ContentRange(bytes: range, length: response.length).text
      head.headerFields[.contentLength] = "\(range.count)"
    case .notModified:
      head.status = .notModified
      head.headerFields.removeAll { Self.representationFields.contains($0.name.canonicalName) }
    case .rangeNotSatisfiable:
      head.status = .rangeNotSatisfiable
      head.headerFields.removeAll { !Self.rangeErrorFields.contains($0.name.canonicalName) }
      head.headerFields[.contentRange] = ContentRange(bytes: nil, length: response.length).text
      head.headerFields[.contentLength] = "0"
    }
    if answer != .rangeNotSatisfiable { head.headerFields[.age] = "\(Int(min(age, Freshness.largestAge)))" }
    head.add(status, name: cacheName)
    return head
  }
}

extension HTTPCacheRules {
  /// The way one stored response could answer a request.
  enum Form: Equatable {
    /// It answers the request.
    case answer(Reuse.Answer)

    /// It does, once these bytes are fetched.
    case missing(Range<Int64>)

    /// It doesn't.
    case none
  }

  /// Returns the form in which a stored response answers a request that it matches (RFC 9110, sections 13.2.2, 14.2).
  func form(of response: StoredResponse, for request: RequestFacts, isHead: Bool) -> Form {
    let body = bodyForm(of: response, for: request, isHead: isHead)
    guard case .answer(let answer) = body else { return body }
    // The conditions of a request count only if the response to it without them would be 2xx.
    if (200..<300).contains(response.status) {
      if let list = request.ifNoneMatch {
        if list.matches(response.facts.validator.entityTag) { return .answer(.notModified) }
      } else if let since = request.ifModifiedSince {
        let modified = response.facts.validator.lastModified.map { Double($0.seconds) } ?? response.dateOrReceipt
        if modified <= Double(since.seconds) { return .answer(.notModified) }
      }
    }
    return .answer(answer)
  }

  private func bodyForm(of response: StoredResponse, for request: RequestFacts, isHead: Bool) -> Form {
    if isHead { return response.isComplete ? .answer(.headOnly) : .none }
    // A cache may ignore a request for several ranges. It does, because a client that is served the whole
    // representation needs no multipart format.
    if response.status == 200, let ranges = request.ranges, ranges.count == 1, rangeApplies(to: response, request) {
      if let length = response.length {
        guard let bytes = ranges[0].bytes(of: length) else {
          return response.isComplete ? .answer(.rangeNotSatisfiable) : .none
        }
        return form(of: response, for: bytes, .partial(bytes))
      }
      if !response.isComplete, case .from(let first, let last?) = ranges[0], last < .max {
        return form(of: response, for: first..<(last + 1), .partial(first..<(last + 1)))
      }
    }
    if response.isComplete { return .answer(.whole) }
    return response.length.map { form(of: response, for: 0..<$0, .whole) } ?? .none
  }

  private func form(of response: StoredResponse, for bytes: Range<Int64>, _ answer: Reuse.Answer) -> Form {
    if response.ranges.isEmpty { return .answer(answer) }
    let gaps = response.missing(in: bytes)
    if gaps.isEmpty { return .answer(answer) }
    return gaps.count == 1 && response.length != nil ? .missing(gaps[0]) : .none
  }

  /// Returns whether `If-Range` allows the range (RFC 9110, section 13.1.5).
  private func rangeApplies(to response: StoredResponse, _ request: RequestFacts) -> Bool {
    let validator = response.facts.validator
    return switch request.ifRange {
    case nil: true
    case .entityTag(let tag): validator.entityTag?.stronglyEquals(tag) ?? false
    case .date(let date): validator.hasStrongDate && validator.lastModified == date
    case .invalid: false
    }
  }
}
#endif
