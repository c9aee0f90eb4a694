extension DataStore where Value == [UInt8] {
  /// A part of this store of bytes, seen as a store of values of one type; see ``TypedView``.
  ///
  /// - Parameters:
  ///   - type: The type of the values.
  ///   - prefix: What stands before each key; nothing unless given.
  ///   - codec: Turns values into bytes and back.
  public func typed<Seen: Sendable>(
    _ type: Seen.Type, prefix: StoreKey = "", codec: some Codec<Seen>
  ) -> TypedView<Self, Seen> {
    TypedView(self, prefix: prefix, codec: codec)
  }
}
