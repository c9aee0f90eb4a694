/// Writes a file from its beginning to its end, a large piece at a time.
public struct BufferedFileWriter: Sendable {
  private static let capacity = 64 * 1024

  private let file: any OpenFile
  private var buffer: [UInt8] = []

  /// How many bytes have gone through the writer.
  public private(set) var count: Int64 = 0

  init(file: any OpenFile) {
    self.file = file
    buffer.reserveCapacity(BufferedFileWriter.capacity)
  }

  /// Appends bytes.
  ///
  /// - Parameter bytes: The bytes.
  /// - Throws: ``FileError``.
  public mutating func write(_ bytes: some Collection<UInt8>) throws(FileError) {
    if buffer.count + bytes.count > BufferedFileWriter.capacity { try flush() }
    buffer.append(contentsOf: bytes)
    count += Int64(bytes.count)
  }

  mutating func flush() throws(FileError) {
    let offset = count - Int64(buffer.count)
    var failure: FileError?
    buffer.withUnsafeBytes { bytes in
      do throws(FileError) { try file.writeAll(bytes, at: offset) } catch { failure = error }
    }
    if let failure { throw failure }
    buffer.removeAll(keepingCapacity: true)
  }
}
