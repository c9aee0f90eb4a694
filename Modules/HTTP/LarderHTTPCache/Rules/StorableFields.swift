#if HTTPCache
internal import HTTPTypes

/// The choice of the fields that are stored (RFC 9111, sections 3.1 and 3.2).
enum StorableFields {
  /// The fields that concern one connection or one proxy.
  static let connectionFields: Set = [
    "connection", "http2-settings", "keep-alive", "proxy-authenticate", "proxy-authentication-info",
    "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
  ]

  /// The fields of a 304, or of a response to `HEAD`, that never change a stored response, because they describe
  /// the bytes of its body.
  static let bodyFields: Set = ["content-encoding", "content-length", "content-range"]

  /// The fields that decide on reuse.
  ///
  /// A response that wants one of them not to be stored isn't stored.
  private static let decisiveFields: Set = ["age", "cache-control", "date", "expires", "vary"]

  /// Returns the fields of a response that may be stored.
  ///
  /// - Parameters:
  ///   - fields: The fields of the response.
  ///   - directives: The directives for this cache.
  ///   - rules: The rules of the cache.
  /// - Returns: The fields, or `nil` if a field that decides on reuse would be missing.
  static func select(
    _ fields: HTTPFields, _ directives: HTTPCacheRules.Directives, _ rules: HTTPCacheRules
  ) -> HTTPFields? {
    var excluded = connectionFields.union(directives.control.noCacheFields)
    if rules.mode == .shared { excluded.formUnion(directives.control.privateFields) }
    for field in fields where field.name == .connection {
      excluded.formUnion(CacheControl.fieldNames(in: field.bytes) ?? [])
    }
    guard excluded.isDisjoint(with: decisiveFields),
      rules.targetedFields.allSatisfy({ !excluded.contains($0.canonicalName) })
    else { return nil }
    var selected = HTTPFields()
    selected.reserveCapacity(fields.count)
    for field in fields where !excluded.contains(field.name.canonicalName) { selected.append(field) }
    return selected
  }

  /// Returns stored fields with those of a later response to a validation in their place.
  ///
  /// - Parameters:
  ///   - stored: The fields that are stored.
  ///   - update: The fields of the later response that may be stored.
  static func updating(_ stored: HTTPFields, with update: HTTPFields) -> HTTPFields {
    // Age tells how old one response was on its way. The one of an earlier response doesn't apply to the later one.
    var replaced: Set<String> = ["age", "date"]
    let added = update.filter { !bodyFields.contains($0.name.canonicalName) }
    for field in added { replaced.insert(field.name.canonicalName) }
    var result = stored.filter { !replaced.contains($0.name.canonicalName) }
    for field in added { result.append(field) }
    return result
  }

  /// Returns the number of bytes of the names and the values.
  static func size(of fields: HTTPFields) -> Int {
    fields.reduce(0) { $0 + $1.name.rawName.utf8.count + $1.withUnsafeBytesOfValue(\.count) }
  }
}
#endif
