#if HTTPCache
import HTTPTypes

/// The values of a response's fields that the rules need, parsed once.
struct ResponseFacts: Sendable {
  /// The time of `Expires`.
  enum Expiration: Sendable, Equatable {
    /// The time.
    case at(HTTPDate)

    /// A value that isn't a date, or several that differ: in the past.
    case invalid
  }

  /// The directives of `Cache-Control`.
  private(set) var cacheControl = CacheControl()

  /// The time of `Date`, if it is valid.
  private(set) var date: HTTPDate?

  /// The time of `Expires`, if it is there.
  private(set) var expires: Expiration?

  /// The seconds of `Age`, or 0 if it isn't there or isn't valid.
  ///
  /// The first member of the first line counts.
  private(set) var age: Int64 = 0

  /// The validators.
  private(set) var validator = Validator()

  /// The names in `Vary` in lower case, sorted; `nil` if `*` is among them.
  private(set) var vary: [String]? = []

  /// The value of `Content-Length`, if it is one number and no transfer coding overrides it.
  private(set) var contentLength: Int64?

  /// A Boolean value that indicates whether `Content-Length` is there, but isn't one number.
  private(set) var hasInvalidLength = false

  /// A Boolean value that indicates whether `Set-Cookie` is there.
  private(set) var hasCookie = false

  /// Parses the fields of a response.
  ///
  /// - Parameters:
  ///   - fields: The fields.
  ///   - received: The time when the response was received, in seconds since 1970.
  init(_ fields: HTTPFields, received: Double) {
    var hasAge = false
    var tags = 0
    var dates = 0
    var hasTransferCoding = false
    for field in fields {
      let name = field.name.canonicalName
      switch name.utf8.count {
      case 3 where name == "age":
        if !hasAge { age = Self.firstSeconds(in: field.bytes) ?? 0 }
        hasAge = true
      case 4 where name == "date":
        dates += 1
        date = dates == 1 ? HTTPDate(field.bytes.trimmed, received: received) : nil
      case 4 where name == "etag":
        tags += 1
        validator.entityTag = tags == 1 ? EntityTag(field.bytes) : nil
      case 4 where name == "vary": addVary(field.bytes)
      case 7 where name == "expires":
        let value = HTTPDate(field.bytes.trimmed, received: received).map { Expiration.at($0) } ?? .invalid
        expires = expires == nil || expires == value ? value : .invalid
      case 10 where name == "set-cookie": hasCookie = true
      case 11 where name == "set-cookie2": hasCookie = true
      case 13 where name == "cache-control": cacheControl.add(field.bytes)
      case 13 where name == "last-modified":
        validator.lastModified = HTTPDate(field.bytes.trimmed, received: received)
      case 14 where name == "content-length":
        let length = CacheControl.deltaSeconds(Array(field.bytes.trimmed))
        if length == nil || (contentLength != nil && contentLength != length) { hasInvalidLength = true }
        contentLength = length
      case 17 where name == "transfer-encoding": hasTransferCoding = true
      default: break
      }
    }
    if let date, let modified = validator.lastModified {
      validator.hasStrongDate = modified.seconds <= date.seconds - 60
    }
    if hasInvalidLength || hasTransferCoding { contentLength = nil }
    if let names = vary, names.count > 1 { vary = Array(Set(names)).sorted() }
  }

  private mutating func addVary(_ line: [UInt8]) {
    var scanner = FieldScanner(line)
    while true {
      scanner.skipToMember()
      guard scanner.current != nil else { return }
      // A member that is no name is read as "*": the response depends on something unknown.
      if let name = scanner.token()?.lowercasedText, scanner.skipMember(), name != "*" {
        vary?.append(name)
      } else {
        _ = scanner.skipMember()
        vary = nil
      }
    }
  }

  private static func firstSeconds(in line: [UInt8]) -> Int64? {
    var scanner = FieldScanner(line)
    scanner.skipWhitespace()
    guard let seconds = scanner.number(), scanner.skipMember() else { return nil }
    return seconds
  }
}
#endif
