/// Where a store is: the scheme of its kind and a place that this kind understands, like `json:users.json`.
///
/// What stands behind the first colon is taken as it is: no character in it is special or has to be escaped. Two URLs are
/// equal where they are the same byte for byte: a composed and a decomposed "é" may name two files.
public struct StoreURL: Sendable, Hashable {
  /// The kind of store, like `json`.
  public let scheme: String

  /// The place, in the terms of that kind of store; a path, for most.
  public let location: String

  /// Makes a URL of its parts.
  ///
  /// - Parameters:
  ///   - scheme: The kind of store.
  ///   - location: The place.
  public init(scheme: String, location: String) {
    self.scheme = scheme
    self.location = location
  }

  /// Makes a URL of its text.
  ///
  /// - Parameter text: The scheme, a colon, and the place.
  /// - Throws: ``StoreError`` with ``StoreError/Code/invalidArgument`` where there is no scheme.
  public init(_ text: String) throws {
    // Looked for among the bytes: a colon and a combining mark behind it are one character.
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), colon > text.startIndex else {
      throw StoreError(
        .invalidArgument, during: .open, store: text,
        message: "a store URL is a scheme, a colon and a place, like json:users.json")
    }
    self.init(scheme: String(text[..<colon]), location: String(text[text.utf8.index(after: colon)...]))
  }
}

extension StoreURL: CustomStringConvertible {
  /// The URL as text.
  public var description: String { "\(scheme):\(location)" }
}

extension StoreURL {
  /// Whether two URLs are the same byte for byte.
  public static func == (left: StoreURL, right: StoreURL) -> Bool {
    left.scheme.utf8.elementsEqual(right.scheme.utf8) && left.location.utf8.elementsEqual(right.location.utf8)
  }

  /// Hashes the bytes.
  public func hash(into hasher: inout Hasher) {
    for byte in description.utf8 { hasher.combine(byte) }
  }
}
