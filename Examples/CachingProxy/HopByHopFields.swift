import HTTPTypes

extension HTTPFields {
  /// The fields that are for one connection and not for the message, beside those that `Connection` lists
  /// (RFC 9110, section 7.6.1).
  private static let hopByHopNames = [
    "Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
  ].compactMap { HTTPField.Name($0 as String) }

  /// Removes the fields that a proxy must not forward.
  ///
  /// `Content-Length` stays even if `Connection` lists it, but not beside `Transfer-Encoding`, which overrides it.
  mutating func removeHopByHopFields() {
    if contains(.transferEncoding) { self[.contentLength] = nil }
    let listed = self[values: .connection].flatMap { $0.split(separator: ",") }
      .compactMap { HTTPField.Name($0.trimming { $0 == " " || $0 == "\t" } as String) }
    for name in listed where name != .contentLength { self[name] = nil }
    for name in Self.hopByHopNames { self[name] = nil }
  }
}

extension HTTPFields {
  /// The fields that frameworks take for the host, the path or the method of a request, beside `X-Forwarded-…`.
  private static let overridingNames: Set = [
    "forwarded", "x-host", "x-http-host-override", "x-http-method", "x-http-method-override", "x-method-override",
    "x-original-host", "x-original-method", "x-original-url", "x-rewrite-url",
  ]

  /// Removes the fields by which a client could change the response for others, because they are in no key of the cache.
  mutating func removeUnkeyedFields() {
    let names = Set(map(\.name)).filter { name in
      Self.overridingNames.contains(name.canonicalName) || name.canonicalName.hasPrefix("x-forwarded-")
    }
    for name in names { self[name] = nil }
  }
}

extension HTTPRequest {
  /// A Boolean value that indicates whether a body follows the head (RFC 9112, section 6.3).
  var hasBody: Bool {
    headerFields.contains(.transferEncoding) || headerFields[.contentLength].map { $0 != "0" } ?? false
  }
}

extension HTTPResponse {
  /// A Boolean value that indicates whether a body follows the head in the response to a request (RFC 9112, section
  /// 6.3).
  func hasBody(inResponseTo method: HTTPRequest.Method) -> Bool {
    method != .head && status.kind != .informational && status != .noContent && status != .notModified
  }

  /// Removes the length of a body that a response with this status never has (RFC 9110, section 8.6).
  mutating func removeImpossibleLength() {
    if status.kind == .informational || status == .noContent { headerFields[.contentLength] = nil }
  }
}

extension Substring {
  fileprivate func trimming(while isTrimmed: (Character) -> Bool) -> String {
    String(drop(while: isTrimmed).reversed().drop(while: isTrimmed).reversed())
  }
}
