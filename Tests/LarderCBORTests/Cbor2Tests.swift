import Foundation
import Larder
import LarderCBOR
import LarderTesting
import TestSupport
import Testing

/// Values that travel between Swift and cbor2, a CBOR library for Python.
///
/// `Scripts/cbor2-peer` creates and checks them.
@Suite struct Cbor2Tests {
  /// A Python with cbor2, which `make test` finds or installs.
  private static let python = ProcessInfo.processInfo.environment["LARDER_PYTHON"] ?? ""

  private static let peer = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../Scripts/cbor2-peer").standardizedFileURL.path()

  private struct Record: Codable, Sendable {
    var id: Int
    var name: String
    var nickname: String?
    var tags: [String]
    var scores: [String: Double]
    var created: Date
    var key: UUID
    var price: Decimal
    var photo: Data
    var flags: [Bool?]
    var byNumber: [Int: [String]]
  }

  /// A value, with the name of its type before it.
  private enum Value: Codable, Sendable {
    case int(Int)
    case uint64(UInt64)
    case int128(Int128)
    case double(Double)
    case string(String)
    case data(Data)
    case date(Date)
    case uuid(UUID)
    case decimal(Decimal)
    case set(Set<Int>)
    case ints([Int])
    case record(Record)
    case records([Record])

    init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      let kind = try container.decode(String.self)
      self =
        switch kind {
        case "Int": .int(try container.decode(Int.self))
        case "UInt64": .uint64(try container.decode(UInt64.self))
        case "Int128": .int128(try container.decode(Int128.self))
        case "Double": .double(try container.decode(Double.self))
        case "String": .string(try container.decode(String.self))
        case "Data": .data(try container.decode(Data.self))
        case "Date": .date(try container.decode(Date.self))
        case "UUID": .uuid(try container.decode(UUID.self))
        case "Decimal": .decimal(try container.decode(Decimal.self))
        case "Set": .set(try container.decode(Set<Int>.self))
        case "Ints": .ints(try container.decode([Int].self))
        case "Record": .record(try container.decode(Record.self))
        default: .records(try container.decode([Record].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.unkeyedContainer()
      func encode(_ kind: String, _ value: some Encodable) throws {
        try container.encode(kind)
        try container.encode(value)
      }
      switch self {
      case .int(let value): try encode("Int", value)
      case .uint64(let value): try encode("UInt64", value)
      case .int128(let value): try encode("Int128", value)
      case .double(let value): try encode("Double", value)
      case .string(let value): try encode("String", value)
      case .data(let value): try encode("Data", value)
      case .date(let value): try encode("Date", value)
      case .uuid(let value): try encode("UUID", value)
      case .decimal(let value): try encode("Decimal", value)
      case .set(let value): try encode("Set", value)
      case .ints(let value): try encode("Ints", value)
      case .record(let value): try encode("Record", value)
      case .records(let value): try encode("Records", value)
      }
    }
  }

  private func run(_ arguments: [String]) throws -> (status: Int32, output: String) {
    let run = try CommandRun([Cbor2Tests.python, Cbor2Tests.peer] + arguments)
    return (run.status, run.output + run.errors)
  }

  @Test(.enabled(if: !python.isEmpty, "LARDER_PYTHON names no Python with cbor2; see Scripts/set-up-python"))
  func `ten thousand values round trip`() throws {
    let count = 10_000
    let seed = SeededGenerator.seedOfProcess
    let folder = FileManager.default.temporaryDirectory.appending(path: "larder-cbor2-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let (theirs, ours) = (folder.appending(path: "theirs"), folder.appending(path: "ours"))

    let making = try run(["make", "\(seed)", "\(count)", theirs.path()])
    try #require(making.status == 0, "\(making.output)")
    // As an array of indefinite length, which needs no count.
    let bytes = [0x9F] + Array(try Data(contentsOf: theirs)) + [0xFF]
    let values = try Coding.decoded(bytes, CBORCodec<[Value]>())
    #expect(values.count == count)
    var written: [UInt8] = []
    for value in values { try CBORCodec<Value>().encode(value, into: &written) }
    try Data(written).write(to: ours)
    let checking = try run(["check", "\(seed)", "\(count)", ours.path()])
    #expect(checking.status == 0, "\(checking.output) (seed \(seed))")
  }
}
