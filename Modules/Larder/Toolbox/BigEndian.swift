extension FixedWidthInteger {
  /// The bytes of the number in big-endian order, in which unsigned numbers of one size are sorted like their bytes.
  ///
  /// ```swift
  /// let key = StoreKey("order/").appending(StoreKey(bytes: number.bigEndianBytes))
  /// ```
  @inlinable
  public var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }

  /// Creates a number from its bytes in big-endian order.
  ///
  /// ```swift
  /// let number = UInt64(bigEndianBytes: key.bytes.suffix(8))
  /// ```
  ///
  /// - Parameter bytes: The bytes. If there are more than the type has, the last ones count.
  @inlinable
  public init(bigEndianBytes bytes: some Sequence<UInt8>) {
    self = bytes.reduce(0) { $0 << 8 | Self(truncatingIfNeeded: $1) }
  }
}
