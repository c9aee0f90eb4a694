import Foundation
import Testing

@testable import EventUploader

@Suite("A request as it comes")
struct HTTPRequestTests {
  private static let text = "POST /events HTTP/1.1\r\nHost: x\r\nContent-LENGTH:  5\r\n\r\nhello"

  @Test("It may come in any pieces")
  func comesInPieces() throws {
    let bytes = Array(Self.text.utf8)
    for cut in 0..<bytes.count {
      var request = HTTPRequest()
      #expect(try request.append(Array(bytes[..<cut])) == nil)
      #expect(try request.append(Array(bytes[cut...])) == Data("hello".utf8))
    }
  }

  @Test("Who waits for a word is told, once")
  func continues() throws {
    var request = HTTPRequest()
    let head = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    #expect(try request.append(Array(head.utf8)) == nil)
    #expect(request.awaitsContinue)
    #expect(try request.append([1]) == nil)
    #expect(!request.awaitsContinue)
    #expect(try request.append([2]) == Data([1, 2]))
  }

  @Test(
    "What makes no sense is refused",
    arguments: [
      "GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "POST / HTTP/1.1\r\n\r\n", "\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
      "POST / HTTP/1.1\r\nno colon\r\n\r\n",
    ])
  func refuses(text: String) {
    #expect(throws: HTTPRequest.Malformed.self) {
      var request = HTTPRequest()
      _ = try request.append(Array(text.utf8))
    }
  }
}
