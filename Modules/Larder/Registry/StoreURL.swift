/// The address of a store, which consists of a scheme and a location, such as `json:users.json`.
///
/// The location is the text after the first colon, used literally. No character in it is special or has to be escaped.
/// Two URLs are equal only if they have the same bytes, because a composed and a decomposed "é" may name two files.
///
/// ```swift
/// let url = try StoreURL("sqlite:shop.sqlite#users")
/// print(url.scheme, url.location)
/// ```
public struct StoreURL: Sendable, Hashable {
  /// The scheme, which names the kind of store, such as `json`.
  public let scheme: String

  /// The location, whose meaning depends on the kind of store.
  ///
  /// For most kinds it is a path.
  public let location: String

  /// Creates a URL from its parts.
  ///
  /// ```swift
  /// let url = StoreURL(scheme: "json", location: folder + "/users.json")
  /// ```
  ///
  /// - Parameters:
  ///   - scheme: The scheme.
  ///   - location: The location.
  public init(scheme: String, location: String) {
    self.scheme = scheme
    self.location = location
  }

  /// Creates a URL from text.
  ///
  /// - Parameter text: The scheme, a colon, and the location.
  /// - Throws: ``StoreError`` with `invalidArgument` if there is no scheme.
  public init(_ text: String) throws {
    // Search the bytes, because a colon followed by a combining mark is one character.
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), colon > text.startIndex else {
      throw StoreError(
        .invalidArgument, during: .open, store: text,
        message: "invalid store URL: expected a scheme, a colon and a location, such as json:users.json")
    }
    self.init(scheme: String(text[..<colon]), location: String(text[text.utf8.index(after: colon)...]))
  }
}

extension StoreURL: CustomStringConvertible {
  /// The URL as text.
  public var description: String { "\(scheme):\(location)" }
}

extension StoreURL {
  /// Returns whether two URLs have the same bytes.
  public static func == (left: StoreURL, right: StoreURL) -> Bool {
    left.scheme.utf8.elementsEqual(right.scheme.utf8) && left.location.utf8.elementsEqual(right.location.utf8)
  }

  /// Hashes the bytes of the URL.
  public func hash(into hasher: inout Hasher) {
    for byte in description.utf8 { hasher.combine(byte) }
  }
}
