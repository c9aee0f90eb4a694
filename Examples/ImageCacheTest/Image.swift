/// A PNG image, as the bytes of its file.
struct Image: Hashable, Sendable {
  /// What every PNG file begins with.
  static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

  let bytes: [UInt8]

  /// Takes the bytes of a file.
  ///
  /// - Parameter bytes: All of them.
  /// - Returns: `nil` where they are not those of a PNG file.
  init?(bytes: [UInt8]) {
    guard bytes.starts(with: Self.signature) else { return nil }
    self.bytes = bytes
  }
}
