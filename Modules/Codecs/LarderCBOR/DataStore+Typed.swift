public import Larder

extension DataStore where Value == [UInt8] {
  /// A part of this store of bytes, seen as a store of `Codable` values, with ``CBORCodec``; see `TypedView`.
  ///
  /// - Parameters:
  ///   - type: The type of the values.
  ///   - prefix: What stands before each key; nothing unless given.
  public func typed<Seen: Codable & Sendable>(_ type: Seen.Type, prefix: StoreKey = "") -> TypedView<Self, Seen> {
    TypedView(self, prefix: prefix, codec: CBORCodec())
  }
}
