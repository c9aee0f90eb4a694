#if HTTPCache
public import HTTPTypes

/// The directives of `Cache-Control` of a request or a response (RFC 9111, section 5.2; RFC 5861; RFC 8246).
///
/// Directives that conflict are read in the most restrictive way: two different `max-age` are stale, and a directive
/// that restricts counts even if its argument is malformed. An unknown directive is ignored.
///
/// ```swift
/// let control = CacheControl(response.headerFields)
/// if control.noStore { print("not stored") } else { print("fresh for", control.maxAge ?? 0, "seconds") }
/// ```
public struct CacheControl: Sendable, Equatable {
  /// The seconds of `max-age`; 0 if the value is invalid.
  public var maxAge: Int64?

  /// The seconds of `s-maxage`; 0 if the value is invalid.
  public var sharedMaxAge: Int64?

  /// The seconds of `min-fresh`.
  public var minFresh: Int64?

  /// The seconds of `max-stale`; `Int64.max` if it has no value.
  public var maxStale: Int64?

  /// The seconds of `stale-while-revalidate`.
  public var staleWhileRevalidate: Int64?

  /// The seconds of `stale-if-error`.
  public var staleIfError: Int64?

  /// A Boolean value that indicates whether `no-cache` stands alone.
  public var noCache = false

  /// The names, in lower case, of the fields that `no-cache` has as its argument.
  public var noCacheFields: [String] = []

  /// A Boolean value that indicates whether `private` stands alone.
  public var isPrivate = false

  /// The names, in lower case, of the fields that `private` has as its argument.
  public var privateFields: [String] = []

  /// A Boolean value that indicates whether `no-store` is there.
  public var noStore = false

  /// A Boolean value that indicates whether `must-revalidate` is there.
  public var mustRevalidate = false

  /// A Boolean value that indicates whether `proxy-revalidate` is there.
  public var proxyRevalidate = false

  /// A Boolean value that indicates whether `must-understand` is there.
  public var mustUnderstand = false

  /// A Boolean value that indicates whether `public` is there.
  public var isPublic = false

  /// A Boolean value that indicates whether `immutable` is there.
  public var isImmutable = false

  /// A Boolean value that indicates whether `only-if-cached` is there.
  public var onlyIfCached = false

  /// Creates a value without directives.
  public init() {}

  /// Reads the lines of `Cache-Control` of a request or a response.
  ///
  /// - Parameter fields: The fields of the head. Without `Cache-Control`, the value has no directives.
  public init(_ fields: HTTPFields) {
    for field in fields[fields: .cacheControl] { add(field.bytes) }
  }

  /// Reads the values of several lines, one after another.
  ///
  /// - Parameter lines: The bytes of the values.
  public init(_ lines: [[UInt8]]) {
    for line in lines { add(line) }
  }

  /// The argument of a directive.
  private enum Argument {
    case none
    case text([UInt8], isQuoted: Bool)
    case malformed
  }

  /// Adds the directives of one line.
  ///
  /// - Parameter line: The bytes of its value. Malformed directives count if they restrict, and are ignored otherwise.
  public mutating func add(_ line: [UInt8]) {
    var scanner = FieldScanner(line)
    while true {
      scanner.skipToMember()
      guard scanner.current != nil else { return }
      guard let name = scanner.token() else {
        _ = scanner.skipMember()
        continue
      }
      var argument = Argument.none
      if scanner.skip(UInt8(ascii: "=")) {
        if let token = scanner.token() {
          argument = .text(Array(token), isQuoted: false)
        } else if let text = scanner.quotedString() {
          argument = .text(text, isQuoted: true)
        } else {
          argument = .malformed
        }
      }
      if !scanner.skipMember() { argument = .malformed }
      add(name.lowercasedText, argument)
    }
  }

  private mutating func add(_ name: String, _ argument: Argument) {
    let isPlain = if case .none = argument { true } else { false }
    switch name {
    case "max-age": Self.add(Self.seconds(argument) ?? 0, to: &maxAge)
    case "s-maxage": Self.add(Self.seconds(argument) ?? 0, to: &sharedMaxAge)
    case "min-fresh":
      if let seconds = Self.seconds(argument) { minFresh = max(seconds, minFresh ?? 0) }
    case "max-stale":
      if let seconds = isPlain ? Int64.max : Self.seconds(argument) { maxStale = min(seconds, maxStale ?? .max) }
    case "stale-while-revalidate":
      let seconds = Self.seconds(argument) ?? 0
      staleWhileRevalidate = min(seconds, staleWhileRevalidate ?? .max)
    case "stale-if-error":
      let seconds = Self.seconds(argument) ?? 0
      staleIfError = min(seconds, staleIfError ?? .max)
    case "no-cache":
      if let names = Self.fieldNames(argument) { noCacheFields += names } else { noCache = true }
    case "private":
      if let names = Self.fieldNames(argument) { privateFields += names } else { isPrivate = true }
    case "no-store": noStore = true
    case "must-revalidate": mustRevalidate = true
    case "proxy-revalidate": proxyRevalidate = true
    case "must-understand": mustUnderstand = true
    case "only-if-cached": onlyIfCached = true
    case "public": isPublic = isPublic || isPlain
    case "immutable": isImmutable = isImmutable || isPlain
    default: break
    }
  }

  /// Sets a number of seconds, or 0 if there is another one already.
  private static func add(_ seconds: Int64, to value: inout Int64?) {
    value = value == nil || value == seconds ? seconds : 0
  }

  /// Returns the delta-seconds of an argument, which may be quoted, or `nil` if it is something else.
  private static func seconds(_ argument: Argument) -> Int64? {
    guard case .text(let text, _) = argument else { return nil }
    return deltaSeconds(text)
  }

  /// Returns the names of an argument, in lower case, or `nil` if it isn't a quoted list of names.
  private static func fieldNames(_ argument: Argument) -> [String]? {
    guard case .text(let text, isQuoted: true) = argument else { return nil }
    return fieldNames(in: text)
  }

  /// Reads a list of field names, or returns `nil` if it is empty or has a member that isn't one.
  static func fieldNames(in text: [UInt8]) -> [String]? {
    var scanner = FieldScanner(text)
    var names: [String] = []
    while true {
      scanner.skipToMember()
      guard scanner.current != nil else { return names.isEmpty ? nil : names }
      guard let name = scanner.token(), scanner.skipMember() else { return nil }
      names.append(name.lowercasedText)
    }
  }

  /// Reads delta-seconds (RFC 9111, section 1.2.2), or returns `nil` if the text is something else.
  static func deltaSeconds(_ text: [UInt8]) -> Int64? {
    var scanner = FieldScanner(text)
    guard let seconds = scanner.number(), scanner.current == nil else { return nil }
    return seconds
  }
}
#endif
