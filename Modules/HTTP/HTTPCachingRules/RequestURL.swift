#if HTTPCache
public import HTTPTypes

/// The URL of a request, the key of its responses.
///
/// The scheme and the host are in lower case; the scheme's default port and the fragment are gone. Nothing else is
/// normalized, because an origin may treat two spellings of a path or a query differently. All characters are ASCII, so
/// two URLs are equal only if their bytes are.
///
/// Forward the same URL that you use as the key. Otherwise a client can store the response to another URL under this one.
///
/// ```swift
/// let url = try RequestURL("https://example.com/news")
/// let next = url.resolving(Array("/news/2".utf8))
/// ```
public struct RequestURL: Sendable, Hashable {
  /// A reason why a text or a request has no URL that a cache can use.
  public enum Problem: Error, Sendable, Hashable {
    /// The scheme, the authority or the path is missing.
    case incomplete

    /// The authority has a user name or a password.
    case userInformation

    /// The URL has a character that no URL has, or an invalid host or port.
    case invalid
  }

  /// The scheme in lower case.
  public let scheme: String

  /// The host in lower case, and the port if it isn't the default one.
  public let authority: String

  /// The path and the query.
  public let target: String

  /// The whole URL.
  public var text: String { scheme + "://" + authority + target }

  /// The URL up to the path.
  public var origin: String { scheme + "://" + authority }

  /// Reads the URL of a request: its scheme, its authority and its path.
  ///
  /// A request has no fragment: an origin may take a `#` for a part of the path.
  ///
  /// - Parameter request: The request.
  /// - Throws: ``Problem``.
  public init(of request: HTTPRequest) throws(Problem) {
    guard let scheme = request.scheme, let authority = request.authority, let path = request.path else {
      throw .incomplete
    }
    guard !path.utf8.contains(UInt8(ascii: "#")) else { throw .invalid }
    try self.init(scheme: scheme, authority: authority, target: path)
  }

  /// Reads an absolute URL.
  ///
  /// - Parameter text: The URL, with a scheme and an authority.
  /// - Throws: ``Problem``.
  public init(_ text: String) throws(Problem) {
    let bytes = Array(text.utf8)
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes.dropFirst(colon + 1).starts(with: "//".utf8) else {
      throw .incomplete
    }
    let rest = bytes[(colon + 3)...]
    let end = rest.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
    try self.init(
      scheme: String(decoding: bytes[..<colon], as: UTF8.self),
      authority: String(decoding: rest[..<end], as: UTF8.self),
      target: String(decoding: rest[end...], as: UTF8.self))
  }

  private init(scheme: String, authority: String, target: String) throws(Problem) {
    guard !scheme.isEmpty, !authority.isEmpty else { throw .incomplete }
    guard scheme.utf8.allSatisfy({ $0.isTokenCharacter }) else { throw .invalid }
    self.scheme = scheme.utf8.lowercasedText
    self.authority = try Self.normalized(authority: Array(authority.utf8), scheme: self.scheme)
    let path = target.utf8.prefix { $0 != UInt8(ascii: "#") }
    guard path.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { throw .invalid }
    switch path.first {
    case nil: self.target = "/"
    case UInt8(ascii: "?"): self.target = "/" + String(Substring(path))
    case UInt8(ascii: "/"): self.target = String(Substring(path))
    default:
      guard path.elementsEqual("*".utf8) else { throw .invalid }
      self.target = "*"
    }
  }

  private static func normalized(authority: [UInt8], scheme: String) throws(Problem) -> String {
    guard !authority.contains(UInt8(ascii: "@")) else { throw .userInformation }
    guard authority.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"/?#\\".utf8.contains($0) }) else { throw .invalid }
    // The colon of the port follows the bracket of an IPv6 address, which has colons of its own.
    let hostEnd = authority.first == UInt8(ascii: "[") ? authority.firstIndex(of: UInt8(ascii: "]")) : 0
    guard let hostEnd else { throw .invalid }
    let colon = authority[hostEnd...].firstIndex(of: UInt8(ascii: ":")) ?? authority.endIndex
    let host = authority[..<colon].lowercasedText
    let port = authority[colon...].dropFirst()
    guard !host.isEmpty, hostEnd == 0 || colon == hostEnd + 1, port.allSatisfy(\.isDigit) else { throw .invalid }
    let isDefault =
      port.isEmpty || (scheme == "http" && port.elementsEqual("80".utf8))
      || (scheme == "https" && port.elementsEqual("443".utf8))
    return isDefault ? host : host + ":" + String(decoding: port, as: UTF8.self)
  }

  /// Returns the URL that a reference in a response to this URL means (RFC 3986, section 5.2).
  ///
  /// - Parameter reference: The bytes of a field such as `Location`.
  /// - Returns: The URL, or `nil` if it isn't one that a cache can use.
  public func resolving(_ reference: [UInt8]) -> RequestURL? {
    let text = reference.prefix { $0 != UInt8(ascii: "#") }
    let slash = UInt8(ascii: "/")
    if let colon = text.firstIndex(of: UInt8(ascii: ":")), text[..<colon].allSatisfy(\.isTokenCharacter), colon > 0 {
      return (try? RequestURL(String(decoding: text, as: UTF8.self)))?.withoutDotSegments
    }
    if text.starts(with: "//".utf8) {
      return (try? RequestURL(scheme + ":" + String(decoding: text, as: UTF8.self)))?.withoutDotSegments
    }
    let base = Array(target.utf8)
    let path = base.prefix { $0 != UInt8(ascii: "?") }
    var whole: ArraySlice<UInt8>
    switch text.first {
    case nil: whole = base[...]
    case slash: whole = text
    case UInt8(ascii: "?"): whole = path + text
    default: whole = path[...(path.lastIndex(of: slash) ?? 0)] + text
    }
    if whole.first != slash { whole = [slash] + whole }
    let resolved = try? RequestURL(
      scheme: scheme, authority: authority, target: String(decoding: whole, as: UTF8.self))
    return resolved?.withoutDotSegments
  }

  /// The URL with `.` and `..` of its path resolved.
  private var withoutDotSegments: RequestURL? {
    let bytes = Array(target.utf8)
    let end = bytes.firstIndex(of: UInt8(ascii: "?")) ?? bytes.endIndex
    let segments = bytes[..<end].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst()
    var kept: [ArraySlice<UInt8>] = []
    for (index, segment) in segments.enumerated() {
      let isLast = index == segments.count - 1
      if segment.elementsEqual(".".utf8) {
        if isLast { kept.append([]) }
      } else if segment.elementsEqual("..".utf8) {
        _ = kept.popLast()
        if isLast { kept.append([]) }
      } else {
        kept.append(segment)
      }
    }
    let path = kept.reduce(into: [UInt8]()) { $0 += [UInt8(ascii: "/")] + $1 }
    return try? RequestURL(
      scheme: scheme, authority: authority, target: String(decoding: path + bytes[end...], as: UTF8.self))
  }
}
#endif
