import Foundation
import Larder
import LarderCBOR
import Testing

extension CodingUserInfoKey {
  // Any text is a valid key.
  fileprivate static var author: CodingUserInfoKey {
    CodingUserInfoKey(rawValue: "author") ?? { preconditionFailure() }()
  }
}

@Suite struct OptionsTests {
  /// A type that encodes values from `userInfo`.
  private struct Signed: Codable, Sendable, Equatable {
    var author: String
    init(author: String) { self.author = author }
    init(from decoder: any Decoder) throws {
      author = "\(decoder.userInfo[.author] ?? "none") read \(try decoder.singleValueContainer().decode(String.self))"
    }
    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode("\(encoder.userInfo[.author] ?? "none")")
    }
  }

  @Test func `user info reaches every value`() throws {
    let options = CBOROptions(userInfo: [.author: "Ada"])
    let signed = Signed(author: "")
    let values: CBORCodec<[String: [Signed?]]> = .cbor(options: options)
    let read = try Coding.decoded(Coding.encoded(["x": [signed, nil]], values), values)
    #expect(read == ["x": [Signed(author: "Ada read Ada"), nil]])
    // Also in a delayed container, and in the place of a superclass that encoded nothing.
    struct Waiting: Codable, Sendable {
      init() {}
      init(from decoder: any Decoder) throws {
        let decoder = try decoder.container(keyedBy: SampleKey.self).superDecoder(forKey: .b)
        #expect(decoder.userInfo[.author] as? String == "Ada")
        #expect(decoder.codingPath.map(\.stringValue) == ["b"])
      }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: SampleKey.self)
        var late = container.nestedUnkeyedContainer(forKey: .a)
        try container.encode(1, forKey: .c)
        try late.encode(Signed(author: ""))
        #expect(late.superEncoder().userInfo[.author] as? String == "Ada")
      }
    }
    let waiting: CBORCodec<Waiting> = .cbor(options: options)
    let bytes = try Coding.encoded(Waiting(), waiting)
    // {"a": ["Ada", {}], "c": 1}
    #expect(Coding.hex(bytes) == "a2" + "6161" + "8263416461a0" + "616301")
    _ = try Coding.decoded(bytes, waiting)
    // Without an option there is no value.
    #expect(try Coding.decoded(Signed.self, Coding.encoded(signed)).author == "none read none")
  }

  /// The coders of a value that has ended.
  private final class KeptCoders: @unchecked Sendable {
    // Proof for @unchecked: the test uses it on one thread.
    var decoder: (any Decoder)?
    var encoder: (any Encoder)?
  }

  /// A type that keeps its coders, or that looks at those that another value has kept.
  private struct Keeping: Codable, Sendable {
    init() {}
    init(from decoder: any Decoder) throws {
      guard let kept = decoder.userInfo[.author] as? KeptCoders else { return }
      if let earlier = kept.decoder {
        #expect(earlier.userInfo.isEmpty)
      } else {
        kept.decoder = decoder
      }
    }
    func encode(to encoder: any Encoder) throws {
      guard let kept = encoder.userInfo[.author] as? KeptCoders else { return }
      if let earlier = kept.encoder {
        #expect(earlier.userInfo.isEmpty)
      } else {
        kept.encoder = encoder
      }
    }
  }

  /// The next value may use the state of a kept coder, on another thread.
  @Test func `a kept coder has no user info of the next value`() throws {
    let kept = KeptCoders()
    let codec: CBORCodec<Keeping> = .cbor(options: CBOROptions(userInfo: [.author: kept]))
    for _ in 0..<2 { _ = try Coding.decoded(Coding.encoded(Keeping(), codec), codec) }
    #expect(try #require(kept.decoder).userInfo.isEmpty)
    #expect(try #require(kept.encoder).userInfo.isEmpty)
  }

  @Test func `keys are sorted`() throws {
    struct Inner: Codable, Sendable, Equatable { var bb = 1, b = [["z": 1, "y": 2]], a: Int? = 3 }
    struct Fields: Codable, Sendable, Equatable { var z = Inner(), a = [Inner()], last = [1: Inner()] }
    let sorted: CBORCodec<Fields> = .cbor(options: CBOROptions(sortsKeys: true))
    let bytes = try Coding.encoded(Fields(), sorted)
    // {"a": 3, "b": [{"y": 2, "z": 1}], "bb": 1}
    let inner = "a3" + "616103" + "616281a2617902617a01" + "62626201"
    // {"a": [inner], "z": inner, "last": {1: inner}}
    #expect(Coding.hex(bytes) == "a3" + "616181\(inner)" + "617a\(inner)" + "646c617374a101\(inner)")
    #expect(try Coding.decoded(bytes, sorted) == Fields())
    #expect(try Coding.decoded(bytes, CBORCodec<Fields>()) == Fields())
    // After existing bytes, and with items of any form.
    var appended: [UInt8] = [7]
    let items: CBORCodec<[CBORItem]> = .cbor(options: CBOROptions(sortsKeys: true))
    let item = try Coding.decoded(CBORItem.self, hex: "bf616202616101ff")
    try items.encode([item, Coding.decoded(CBORItem.self, hex: "c1a2616205616101")], into: &appended)
    #expect(Coding.hex(appended) == "07" + "82" + "bf616101616202ff" + "c1a2616101616205")
  }
}
