import AsyncHTTPClient
import HTTPTestSupport
import LarderHTTPCache
import LarderHTTPClient
import LarderTesting
import NIOCore
import NIOHTTP1
import NIOHTTPCompression
import Testing

@Suite("Decoded bodies", .timeLimit(.minutes(1)))
struct DecodingTests {
  private static let text = "hello, hello, hello"
  private static let gzip: [UInt8] = [
    0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0xD7,
    0x51, 0xC8, 0x40, 0xA2, 0x00, 0x9F, 0xA1, 0xCA, 0x09, 0x13, 0x00, 0x00, 0x00,
  ]
  private static let deflate: [UInt8] = [
    0x78, 0x9C, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0xD7, 0x51, 0xC8, 0x40, 0xA2, 0x00, 0x44, 0x28, 0x06,
    0xD5,
  ]

  /// The bytes of a message as text.
  private static func characters(_ bytes: [UInt8]) -> String {
    String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
  }

  /// Runs a closure in front of an origin that encodes the text as the path says.
  private func run(decodes: Bool, _ body: (Setting) async throws -> Void) async throws {
    let decompression: HTTPClient.Decompression = decodes ? .enabled(limit: .ratio(1000)) : .disabled
    try await Setting.run(client: .init(decompression: decompression)) { request, wire in
      let encoding = String(request.target.dropFirst())
      let fields = ["Cache-Control: max-age=60", "ETag: \"1\"", "Vary: Accept-Encoding"].joined(separator: "\r\n")
      if request["If-None-Match"].joined().contains("\"1\"") {
        try await wire.send("HTTP/1.1 304 Not Modified\r\n\(fields)\r\n\r\n")
        return .keep
      }
      let body = encoding == "deflate" ? Self.deflate : Self.gzip
      let answer = response(fields, "Content-Encoding: \(encoding)", body: Self.characters(body))
      // A response to HEAD ends with its head.
      let end = request.method == "HEAD" ? answer.firstRange(of: "\r\n\r\n")?.upperBound : nil
      try await wire.send(String(answer[..<(end ?? answer.endIndex)]))
      return .keep
    } _: { setting async throws in
      try await body(setting)
    }
  }

  @Test("A body that the client has decoded is stored as such, with a weak tag that the origin confirms")
  func decoded() async throws {
    try await run(decodes: true) { setting async throws in
      for isHit in [false, true] {
        let received = try await setting.send(setting.request("/gzip"))
        #expect(received.body == Self.text && received.isHit == isHit)
        #expect(received["Content-Encoding"].isEmpty && received["ETag"] == ["W/\"1\""])
        #expect(received["Content-Length"] == (isHit ? ["\(Self.text.utf8.count)"] : []))
      }
      for _ in 1...2 {
        setting.clock.advance(by: .seconds(100))
        let validated = try await setting.send(setting.request("/gzip"))
        #expect(validated.body == Self.text && validated.response.cacheStatus?.isValidated == true)
        #expect(validated["Content-Encoding"].isEmpty && validated["ETag"] == ["W/\"1\""])
        // The 304 has freshened the stored response.
        #expect(try await setting.send(setting.request("/gzip")).isHit)
      }
      #expect(setting.origin.requests.count == 3)
    }
  }

  @Test("A body that the client has not decoded is stored encoded")
  func encoded() async throws {
    try await run(decodes: false) { setting async throws in
      for isHit in [false, true] {
        let response = try await setting.http.execute(setting.request("/gzip"), timeout: .seconds(10))
        let bytes = try await response.body.collect(upTo: 1000)
        #expect(Array(buffer: bytes) == Self.gzip && response.cacheStatus?.isHit == isHit)
        #expect(response.headers["Content-Encoding"] == ["gzip"] && response.headers["ETag"] == ["\"1\""])
        #expect(response.headers["Content-Length"] == ["\(Self.gzip.count)"])
      }
    }
  }

  @Test(
    "A body in deflate is not stored, because its bytes do not show whether it was decoded", arguments: [true, false])
  func deflate(decodes: Bool) async throws {
    try await run(decodes: decodes) { setting async throws in
      for _ in 1...2 {
        let response = try await setting.http.execute(setting.request("/deflate"), timeout: .seconds(10))
        let bytes = try await response.body.collect(upTo: 1000)
        #expect(Array(buffer: bytes) == (decodes ? Array(Self.text.utf8) : Self.deflate))
        #expect(response.cacheStatus?.detail == "not-stored-client")
      }
      #expect(setting.origin.requests.count == 2)
    }
  }

  @Test("HEAD and an unknown encoding are passed on as they are", arguments: [true, false])
  func others(decodes: Bool) async throws {
    try await run(decodes: decodes) { setting async throws in
      let head = try await setting.send(setting.request("/br", .head))
      #expect(head["Content-Encoding"] == ["br"] && head["ETag"] == ["\"1\""])
      let response = try await setting.http.execute(setting.request("/br"), timeout: .seconds(10))
      #expect(try await Array(buffer: response.body.collect(upTo: 1000)) == Self.gzip)
      #expect(response.headers["Content-Encoding"] == ["br"])
    }
  }
}
