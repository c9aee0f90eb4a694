import Crypto
import Larder
import LarderCrypto

/// Encrypted values beside the calls of swift-crypto that they need.
enum Encryption {
  private static let roundCount = 2000
  private static let key: StoreKey = "user:100000"

  static let comparisons = [(200, 1.3), (65_536, 1.15)].flatMap { size, limit in
    [
      Comparison(
        encoding(size), beside: [Comparison.Yardstick(sealing(size), limit: limit)]),
      Comparison(
        decoding(size), beside: [Comparison.Yardstick(opening(size), limit: limit)]),
    ]
  }

  private static func value(_ size: Int) -> [UInt8] {
    [UInt8](repeating: 7, count: size)
  }

  /// A source of a ring in memory.
  private struct Source: KeySource {
    func load() -> [UInt8]? { nil }
    func save(_ content: [UInt8], replacing previous: [UInt8]?) {}
  }

  private static func codec() async throws -> EncryptedCodec<RawCodec> {
    RawCodec().encrypted(with: try await KeyRing.open(in: Source(), createsIfMissing: true), purpose: "users")
  }

  private static func encoding(_ size: Int) -> Workload {
    Workload("encode an encrypted value of \(size) bytes", operationCount: roundCount) { _ in
      let (codec, value) = (try await codec(), value(size))
      return {
        for _ in 0..<roundCount {
          var bytes: [UInt8] = []
          try codec.encode(value, into: &bytes, context: ValueContext(key: key))
          consume(bytes)
        }
      }
    }
  }

  private static func decoding(_ size: Int) -> Workload {
    Workload("decode an encrypted value of \(size) bytes", operationCount: roundCount) { _ in
      let codec = try await codec()
      var bytes: [UInt8] = []
      try codec.encode(value(size), into: &bytes, context: ValueContext(key: key))
      return { [bytes] in
        for _ in 0..<roundCount {
          consume(try codec.decode(bytes.span.bytes, context: ValueContext(key: key)))
        }
      }
    }
  }

  /// The authenticated data of a value, as long as that of the codec.
  private static let authenticated = [UInt8](repeating: 1, count: 42)

  private static func sealing(_ size: Int) -> Workload {
    Workload("seal \(size) bytes with AES.GCM of swift-crypto", operationCount: roundCount) { _ in
      let (key, value) = (SymmetricKey(size: .bits256), value(size))
      return {
        for _ in 0..<roundCount {
          consume(try AES.GCM.seal(value, using: key, authenticating: authenticated))
        }
      }
    }
  }

  private static func opening(_ size: Int) -> Workload {
    Workload("open \(size) bytes with AES.GCM of swift-crypto", operationCount: roundCount) { _ in
      let key = SymmetricKey(size: .bits256)
      let box = try AES.GCM.seal(value(size), using: key, authenticating: authenticated)
      return {
        for _ in 0..<roundCount {
          consume([UInt8](try AES.GCM.open(box, using: key, authenticating: authenticated)))
        }
      }
    }
  }
}
