#if Compression
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderCompression

/// Python's modules `zlib`, `json` and `base64` read and write the formats, with no information beyond the
/// documentation.
@Suite struct PythonTests {
  /// The common start of the programs below, which take a file of dictionaries and lines of hexadecimal digits.
  private static let preamble = """
    import base64, json, sys, zlib
    dictionaries = {}
    for entry in json.load(open(sys.argv[1]))["dictionaries"]:
        content = base64.b64decode(entry["base64"])
        assert zlib.crc32(content) == int(entry["crc32"], 16)
        dictionaries[zlib.crc32(content) & 0xffff] = content

    """

  private static let reader = """
    for line in sys.stdin:
        stored = bytes.fromhex(line.strip())
        mark, rest, dictionary = stored[0], stored[1:], b""
        if mark == 0:
            print(rest.hex())
            continue
        if mark == 2:
            dictionary, rest = dictionaries[int.from_bytes(rest[:2], "little")], rest[2:]
        saved = shift = 0
        while True:
            byte, rest = rest[0], rest[1:]
            saved |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80: break
        checksum, content = int.from_bytes(rest[:4], "little"), rest[4:]
        inflater = zlib.decompressobj(-15, zdict=dictionary)
        value = inflater.decompress(content)
        assert inflater.eof and not inflater.unused_data
        assert len(value) == len(content) + saved
        assert zlib.crc32(value, zlib.crc32(dictionary)) == checksum
        print(value.hex())
    """

  private static let writer = """
    for line in sys.stdin:
        value = bytes.fromhex(line.strip())
        for identifier, dictionary in [(None, b"")] + list(dictionaries.items()):
            deflater = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, dictionary)
            content = deflater.compress(value) + deflater.flush()
            saved = len(value) - len(content)
            assert saved > 0
            stored = bytearray([1] if identifier is None else [2, identifier & 0xff, identifier >> 8])
            while saved >= 0x80:
                stored.append(saved & 0x7f | 0x80)
                saved >>= 7
            stored.append(saved)
            stored += zlib.crc32(value, zlib.crc32(dictionary)).to_bytes(4, "little") + content
            print(stored.hex())
    """

  private func dictionaries(in folder: TemporaryFolder) async throws -> CompressionDictionaries {
    let path = folder.path("dictionaries")
    for seed in 1...2 as ClosedRange<UInt64> {
      let dictionary = try CompressionDictionary.train(on: SampleRecords.users(50, seed: seed), size: 1000)
      _ = try await CompressionDictionaries.add(dictionary, toFile: path)
    }
    return try await CompressionDictionaries.read(fromFile: path)
  }

  private func output(of program: String, in folder: TemporaryFolder, for values: [[UInt8]]) throws -> [[UInt8]] {
    let input = values.map { Hexadecimal.text(of: $0) + "\n" }.joined()
    let run = try CommandRun(
      ["python3", "-c", Self.preamble + program, folder.path("dictionaries")], input: input)
    try #require(run.status == 0, "\(run.errors)")
    return try run.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      .map { try #require(Hexadecimal.bytes(of: Array($0.utf8))) }
  }

  @Test func `python reads written data`() async throws {
    let folder = try TemporaryFolder()
    let dictionaries = try await dictionaries(in: folder)
    let values =
      SampleRecords.users(50, seed: 9) + SampleRecords.customers(20, seed: 9)
      + [[], [1], Array(repeating: 7, count: 200_000)]
    let codecs = [
      RawCodec().compressed(threshold: 0), RawCodec().compressed(dictionary: dictionaries.all.first),
      RawCodec().compressed(level: 1, dictionaries: dictionaries),
    ]
    for codec in codecs {
      let stored = try values.map { try Coding.bytes(of: $0, by: codec) }
      #expect(stored.contains { $0.first != 0 })
      #expect(try output(of: Self.reader, in: folder, for: stored) == values)
    }
  }

  @Test func `data written by Python is read`() async throws {
    let folder = try TemporaryFolder()
    let codec = RawCodec.raw.compressed(dictionaries: try await dictionaries(in: folder))
    let values = SampleRecords.customers(20, seed: 11)
    let stored = try output(of: Self.writer, in: folder, for: values)
    #expect(stored.count == 3 * values.count)
    for (index, bytes) in stored.enumerated() {
      #expect(try Coding.value(of: bytes, by: codec) == values[index / 3])
    }
  }
}
#endif
