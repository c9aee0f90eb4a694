import ExampleSupport
import Foundation
import Testing

@testable import ImageCacheTest

@Suite("Images")
struct ImageTests {
  @Test("The checksums match the standards")
  func checksums() {
    // The check values of the catalog of CRCs, and of RFC 1950's algorithm for "Wikipedia".
    #expect(Checksum.crc32(of: Array("123456789".utf8)) == 0xCBF4_3926)
    #expect(Checksum.adler32(of: Array("Wikipedia".utf8)) == 0x11E6_0398)
  }

  @Test func `Drawn images differ from each other`() {
    let numbers = Array(0..<10) + [255, 256, 65_535, 65_536]
    #expect(Set(numbers.map { ImageDrawing.bytes(ofImage: $0) }).count == numbers.count)
  }

  @Test(.enabled(if: python != nil))
  func `Another program reads a drawn image, its checksums and its pixels`() async throws {
    try await TemporaryFolder.with { folder in
      let path = "\(folder)/image.png"
      try Data(ImageDrawing.bytes(ofImage: 0xFF8001)).write(to: URL(filePath: path))
      let script = """
        import struct, sys, zlib
        data = open(sys.argv[1], "rb").read()
        assert data[:8] == b"\\x89PNG\\r\\n\\x1a\\n"
        place, chunks = 8, {}
        while place < len(data):
            length, = struct.unpack(">I", data[place:place + 4])
            kind, body = data[place + 4:place + 8], data[place + 8:place + 8 + length]
            assert struct.unpack(">I", data[place + 8 + length:place + 12 + length])[0] == zlib.crc32(kind + body)
            chunks[kind] = body
            place += 12 + length
        assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
        width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
        pixels = zlib.decompress(chunks[b"IDAT"])
        assert len(pixels) == height * (1 + 3 * width)
        print(width, height, pixels[:4].hex(), end="")
        """
      let output = Pipe()
      let process = Process()
      process.executableURL = URL(filePath: "/usr/bin/env")
      process.arguments = ["python3", "-c", script, path]
      process.standardOutput = output
      try process.run()
      let text = try output.fileHandleForReading.readToEnd() ?? Data()
      process.waitUntilExit()
      #expect(process.terminationStatus == 0)
      #expect(String(decoding: text, as: UTF8.self) == "96 96 00ff8001")
    }
  }

  @Test func `Files come first, each image once; other files are skipped, and missing images are drawn`() async throws {
    try await TemporaryFolder.with { folder in
      try FileManager.default.createDirectory(atPath: "\(folder)/below", withIntermediateDirectories: true)
      let files: [(String, [UInt8])] = [
        ("a.png", ImageDrawing.bytes(ofImage: 1_000_000)), ("below/b.png", ImageDrawing.bytes(ofImage: 1_000_001)),
        ("same.png", ImageDrawing.bytes(ofImage: 1_000_000)), ("text.png", Array("no image".utf8)),
        ("image.jpg", ImageDrawing.bytes(ofImage: 1_000_002)),
      ]
      for (name, bytes) in files { try Data(bytes).write(to: URL(filePath: "\(folder)/\(name)")) }
      let collection = ImageCollection(count: 5, folder: folder)
      #expect(collection.fileCount == 2)
      #expect(collection.images.count == 5 && Set(collection.images).count == 5)
      #expect(Set(collection.images.prefix(2).map(\.bytes)) == [files[0].1, files[1].1])
      #expect(ImageCollection(count: 1, folder: folder).images.count == 1)
      #expect(ImageCollection(count: 3, folder: "\(folder)/nowhere").fileCount == 0)
    }
  }

  private static let python = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    .first { FileManager.default.isExecutableFile(atPath: "\($0)/python3") }
}
