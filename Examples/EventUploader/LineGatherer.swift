import Foundation

/// A buffer that turns chunks of bytes into lines and keeps an incomplete line.
struct LineGatherer {
  private var rest = Data()

  /// Adds bytes.
  ///
  /// - Returns: The lines that are now complete, without their line feeds.
  mutating func append(_ bytes: Data) -> [String] {
    rest += bytes
    var parts = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    rest = Data(parts.popLast() ?? Data())
    return parts.map { String(decoding: $0, as: UTF8.self) }
  }
}
