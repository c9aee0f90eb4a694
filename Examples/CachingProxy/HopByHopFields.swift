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

extension HTTPRequest {
  /// Whether a body follows the head (RFC 9112, section 6.3).
  var hasBody: Bool {
    headerFields.contains(.transferEncoding) || headerFields[.contentLength].map { $0 != "0" } ?? false
  }
}

extension HTTPResponse {
  /// Whether a body follows the head in the response to a request (RFC 9112, section 6.3).
  func hasBody(inResponseTo method: HTTPRequest.Method) -> Bool {
    method != .head && status.kind != .informational && status != .noContent && status != .notModified
  }
}

extension Substring {
  fileprivate func trimming(while isTrimmed: (Character) -> Bool) -> String {
    String(drop(while: isTrimmed).reversed().drop(while: isTrimmed).reversed())
  }
}
