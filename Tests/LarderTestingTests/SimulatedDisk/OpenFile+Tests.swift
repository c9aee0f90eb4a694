import LarderFiles

extension OpenStoreFile {
  /// Writes all of the given bytes.
  func write(_ bytes: [UInt8], at offset: Int64 = 0) throws {
    var failure: FileError?
    bytes.withUnsafeBytes { bytes in
      do throws(FileError) { try writeAll(bytes, at: offset) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Writes bytes with one call.
  func writeOnce(_ bytes: [UInt8], at offset: Int64 = 0) throws -> Int {
    try bytes.withUnsafeBytes { try write($0, at: offset) }
  }

  /// Reads bytes with one call.
  func readOnce(_ count: Int, at offset: Int64 = 0) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0xEE, count: count)
    let read = try bytes.withUnsafeMutableBytes { try self.read(into: $0, at: offset) }
    return Array(bytes.prefix(read))
  }
}
