#if HTTPCache
import HTTPTypes
import RawStructuredFieldValues

extension CacheControl {
  /// Reads a targeted field (RFC 9213), a dictionary of RFC 9651.
  ///
  /// - Parameter fields: The lines of the field.
  /// - Returns: The directives, or `nil` if the field is empty or invalid, or if a known directive has a value of the
  ///   wrong type. The field is ignored as a whole then.
  init?(targeted lines: [[UInt8]]) {
    self.init()
    var parser = StructuredFieldValueParser(Array(lines.joined(separator: ", ".utf8)))
    guard let members = try? parser.parseDictionaryFieldValue(), !members.isEmpty else { return nil }
    for (name, member) in members {
      guard case .item(let item) = member else {
        if Self.isKnown(name) { return nil }
        continue
      }
      guard add(targeted: name, item.rfc9651BareItem) else { return nil }
    }
  }

  private static func isKnown(_ name: String) -> Bool {
    var probe = CacheControl()
    return !probe.add(targeted: name, .date(0))
  }

  /// Adds one directive.
  ///
  /// Returns `false` if it is a known one whose value has the wrong type.
  private mutating func add(targeted name: String, _ value: RFC9651BareItem) -> Bool {
    switch name {
    case "max-age": Self.set(&maxAge, value)
    case "s-maxage": Self.set(&sharedMaxAge, value)
    case "stale-while-revalidate": Self.set(&staleWhileRevalidate, value)
    case "stale-if-error": Self.set(&staleIfError, value)
    case "no-store": Self.set(&noStore, value)
    case "must-revalidate": Self.set(&mustRevalidate, value)
    case "proxy-revalidate": Self.set(&proxyRevalidate, value)
    case "must-understand": Self.set(&mustUnderstand, value)
    case "public": Self.set(&isPublic, value)
    case "immutable": Self.set(&isImmutable, value)
    case "no-cache": Self.set(&noCache, &noCacheFields, value)
    case "private": Self.set(&isPrivate, &privateFields, value)
    default: true
    }
  }

  private static func set(_ seconds: inout Int64?, _ value: RFC9651BareItem) -> Bool {
    guard case .integer(let number) = value, number >= 0 else { return false }
    seconds = number
    return true
  }

  private static func set(_ flag: inout Bool, _ value: RFC9651BareItem) -> Bool {
    guard case .bool(let isTrue) = value else { return false }
    flag = isTrue
    return true
  }

  private static func set(_ flag: inout Bool, _ names: inout [String], _ value: RFC9651BareItem) -> Bool {
    guard case .string(let text) = value else { return set(&flag, value) }
    guard let list = fieldNames(in: Array(text.utf8)) else { return false }
    names = list
    return true
  }
}

extension HTTPCacheRules {
  /// The directives that a response has for this cache.
  struct Directives {
    /// The directives.
    var control: CacheControl

    /// A Boolean value that indicates whether they come from a targeted field, so `Cache-Control` and `Expires` don't
    /// count.
    var isTargeted: Bool
  }

  /// Returns the directives of the first targeted field that is valid, or else of `Cache-Control`.
  func directives(of fields: HTTPFields, _ facts: ResponseFacts) -> Directives {
    for name in targetedFields where fields.contains(name) {
      if let control = CacheControl(targeted: fields[fields: name].map(\.bytes)) {
        return Directives(control: control, isTargeted: true)
      }
    }
    return Directives(control: facts.cacheControl, isTargeted: false)
  }
}
#endif
