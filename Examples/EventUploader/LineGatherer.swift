import Foundation

/// Makes lines of bytes that come in pieces; what has no end yet is kept.
struct LineGatherer {
  private var rest = Data()

  /// Adds bytes.
  ///
  /// - Returns: The lines that are whole now, without their ends.
  mutating func append(_ bytes: Data) -> [String] {
    rest += bytes
    var parts = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    rest = Data(parts.popLast() ?? Data())
    return parts.map { String(decoding: $0, as: UTF8.self) }
  }
}
