/// The bytes of a value are not those that were stored: their checksum is wrong, or missing.
public struct ChecksumError: ValueFreeError, Hashable {
  /// How many bytes there are, the place of the checksum included.
  public let byteCount: Int

  /// Describes what is wrong with a value.
  package init(byteCount: Int) {
    self.byteCount = byteCount
  }
}

extension ChecksumError: CustomStringConvertible {
  /// What is wrong, without any byte of the value.
  public var description: String { "the checksum of the \(byteCount) bytes does not fit them" }
}
