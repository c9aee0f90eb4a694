import Larder
import Testing

@testable import FileCatalog

@Suite("The record of a file")
struct FileRecordTests {
  @Test(arguments: FileKind.allCases)
  func `A record round-trips through its codec`(kind: FileKind) throws {
    let record = FileRecord(
      kind: kind, size: .max, mode: 0o7777, modified: FileTime(seconds: -1, nanoseconds: 999_999_999),
      changed: FileTime(seconds: 1_776_159_000, nanoseconds: 123_456_789))
    let codec = JSONCodec<FileRecord>()
    var bytes: [UInt8] = []
    try codec.encode(record, into: &bytes)
    #expect(try codec.decode(bytes.span.bytes) == record)
  }
}
