extension StoreKey {
  /// Makes a key of several components, in a form that keeps their order.
  ///
  /// ```swift
  /// let key = StoreKey(components: "txn", account, date, id)
  /// let all = KeyRange.prefix(components: "txn", account)
  /// ```
  ///
  /// The label keeps such keys apart from plain ones: `StoreKey("txn")` is not a prefix of the key above.
  ///
  /// - Parameter components: Strings, integers, floating-point numbers, booleans, dates, UUIDs, bytes, optionals of
  ///   these, or ``KeyComponent`` itself. See there for the format.
  public init(components: any KeyComponentConvertible...) {
    self.init(components: components.map(\.keyComponent))
  }

  /// Makes a key of several components, in a form that keeps their order.
  ///
  /// - Parameter components: The components, the most significant one first.
  public init(components: [KeyComponent]) {
    var encoder = KeyComponentEncoder()
    encoder.append(components)
    self.init(bytes: encoder.bytes)
  }

  /// The components that the key was made of.
  ///
  /// - Returns: The components, the most significant one first.
  /// - Throws: ``StoreError`` with ``StoreError/Code/invalidKey`` where the key was not made of components, or is longer
  ///   than ``maximumLength``.
  public func components() throws -> [KeyComponent] {
    guard count <= StoreKey.maximumLength else {
      throw KeyComponentDecoder.error("it has \(count) bytes, more than \(StoreKey.maximumLength)", key: self)
    }
    var decoder = KeyComponentDecoder(key: self)
    return try decoder.components()
  }
}

extension KeyRange {
  /// The keys whose first components are the given ones, that of just these components included.
  ///
  /// - Parameter components: The components that the keys have in common; see ``StoreKey/init(components:)-(Any...)``.
  public static func prefix(components: any KeyComponentConvertible...) -> KeyRange {
    prefix(components: components.map(\.keyComponent))
  }

  /// The keys whose first components are the given ones, that of just these components included.
  ///
  /// - Parameter components: The components that the keys have in common.
  public static func prefix(components: [KeyComponent]) -> KeyRange {
    let key = StoreKey(components: components)
    // 0xFF is no type code: what follows the prefix with it is the rest of an escaped NUL in a longer string, so the
    // range of plain bytes would let "a\0b" in with "a".
    return components.isEmpty ? .all : KeyRange(from: key, upTo: StoreKey(bytes: key.bytes + [0xFF]))
  }
}
