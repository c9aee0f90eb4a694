import Crypto
import Larder
import LarderCrypto

/// Encrypted values beside plain ones, and the calls of swift-crypto that they need.
public enum Encryption {
  private static let roundCount = 2000
  private static let key: StoreKey = "user:100000"

  /// The cost of encryption when a value is encoded or decoded.
  public struct Cost: Sendable {
    /// The name of the figure.
    public let name: String
    /// The codec that encrypts.
    public let encrypted: Workload
    /// The same codec without encryption.
    public let plain: Workload
    /// The calls of swift-crypto.
    public let yardstick: Workload
    /// The maximum ratio of the added time to that of the yardstick.
    public let limit: Double
  }

  /// The costs for a small and a large value.
  public static let costs = [(200, 1.3), (65_536, 1.15)].flatMap { size, limit in
    [
      Cost(
        name: "cost of encryption when encoding \(size) bytes", encrypted: encoding(size, by: codec, "encrypted"),
        plain: encoding(size, by: { RawCodec() }, "plain"), yardstick: sealing(size), limit: limit),
      Cost(
        name: "cost of encryption when decoding \(size) bytes", encrypted: decoding(size, by: codec, "encrypted"),
        plain: decoding(size, by: { RawCodec() }, "plain"), yardstick: opening(size), limit: limit),
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

  private static func encoding<C: Codec<[UInt8]>>(
    _ size: Int, by codec: @escaping @Sendable () async throws -> C, _ name: String
  ) -> Workload {
    Workload("encode a value of \(size) bytes, \(name)", operationCount: roundCount) { _ in
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

  private static func decoding<C: Codec<[UInt8]>>(
    _ size: Int, by codec: @escaping @Sendable () async throws -> C, _ name: String
  ) -> Workload {
    Workload("decode a value of \(size) bytes, \(name)", operationCount: roundCount) { _ in
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
    Workload("AES.GCM.seal of \(size) bytes, appended to an array", operationCount: roundCount) { _ in
      let (key, value) = (SymmetricKey(size: .bits256), value(size))
      return {
        for _ in 0..<roundCount {
          var bytes: [UInt8] = []
          if let box = try AES.GCM.seal(value, using: key, authenticating: authenticated).combined { bytes += box }
          consume(bytes)
        }
      }
    }
  }

  private static func opening(_ size: Int) -> Workload {
    Workload("AES.GCM.open of \(size) bytes from an array", operationCount: roundCount) { _ in
      let key = SymmetricKey(size: .bits256)
      let sealed = try AES.GCM.seal(value(size), using: key, authenticating: authenticated)
      let bytes = [UInt8](sealed.combined ?? sealed.ciphertext)
      return {
        for _ in 0..<roundCount {
          consume(try AES.GCM.open(.init(combined: bytes), using: key, authenticating: authenticated))
        }
      }
    }
  }
}
