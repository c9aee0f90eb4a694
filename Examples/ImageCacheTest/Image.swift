/// The bytes of a PNG file.
struct Image: Hashable, Sendable {
  /// The first bytes of every PNG file.
  static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

  let bytes: [UInt8]

  /// Creates an image from the bytes of a file.
  ///
  /// - Parameter bytes: All bytes of the file.
  /// - Returns: `nil` if the file is not a PNG file.
  init?(bytes: [UInt8]) {
    guard bytes.starts(with: Self.signature) else { return nil }
    self.bytes = bytes
  }
}
