#if Crypto
import Crypto
import Foundation
import Larder

/// The encryption and decryption of an ``EncryptedCodec``, whatever the type of its values.
struct ValueSealer: Sendable {
  /// The beginning of the external data: an array of three, the text `larder`, and the purpose.
  private let boundPurpose: [UInt8]

  /// An array of three and the context string of COSE_Encrypt0 (RFC 9052, section 5.3).
  private static let context: [UInt8] = [0x83, 0x68] + Array("Encrypt0".utf8)

  /// The beginning of the authenticated data: the context and the protected header.
  private static let starts = (
    aesGCM: context + EncryptedValue.protectedHeader(for: .aesGCM),
    chaChaPoly: context + EncryptedValue.protectedHeader(for: .chaChaPoly)
  )

  init(purpose: String) {
    var bytes: [UInt8] = [0x83, 0x66] + Array("larder".utf8)
    CBORHead.append(CBORHead.textString, purpose.utf8.count, to: &bytes)
    bytes.append(contentsOf: purpose.utf8)
    boundPurpose = bytes
  }

  /// A decrypted value.
  struct Opened {
    var plain: Data
    var ringKey: RingKey
    var algorithm: EncryptionAlgorithm
  }

  /// Replaces a plain value at the end of an array by the encrypted value.
  ///
  /// - Parameters:
  ///   - bytes: The array.
  ///   - start: The index at which the encrypted value begins. The plain value begins
  ///     ``EncryptedValue/maximumOverhead`` bytes later, so the encrypted value needs no further memory.
  ///   - key: The key of the entry.
  ///   - keys: The keys, of which the primary one is used.
  ///   - algorithm: The algorithm.
  /// - Throws: ``KeyRingError`` with `full`.
  func seal(
    _ bytes: inout [UInt8], from start: Int, key: StoreKey?, keys: RingSnapshot, algorithm: EncryptionAlgorithm
  ) throws {
    let ringKey = keys.primary
    try ringKey.countSeal()
    let data = authenticatedData(for: key, algorithm)
    let combined = try bytes.withUnsafeBytes { bytes in
      let plain = UnsafeRawBufferPointer(rebasing: bytes[(start + EncryptedValue.maximumOverhead)...])
      // The nonce is random.
      return switch algorithm {
      case .aesGCM: try AES.GCM.seal(plain, using: ringKey.key, authenticating: data).combined
      case .chaChaPoly: try ChaChaPoly.seal(plain, using: ringKey.key, authenticating: data).combined
      }
    }
    // The combined form is missing only for nonces of another size.
    guard let combined else { throw CryptoKitError.incorrectParameterSize }
    bytes.removeLast(bytes.count - start)
    bytes.append(contentsOf: ringKey.prefix(for: algorithm))
    combined.withUnsafeBytes { combined in
      let combined = combined.assumingMemoryBound(to: UInt8.self)
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: combined[..<EncryptedValue.nonceSize]))
      let content = UnsafeBufferPointer(rebasing: combined[EncryptedValue.nonceSize...])
      CBORHead.append(CBORHead.byteString, content.count, to: &bytes)
      bytes.append(contentsOf: content)
    }
  }

  /// Decrypts a value.
  ///
  /// - Throws: ``EncryptedValueError``; ``KeyRingError`` with `unavailable`.
  func open(_ bytes: UnsafeRawBufferPointer, key: StoreKey?, keys: RingSnapshot) throws -> Opened {
    let value = try EncryptedValue(bytes)
    guard let ringKey = keys[value.keyID] else {
      throw KeyRingError(
        .unavailable,
        message: "the value is encrypted with the key \(value.keyID), which the key ring does not have; if another "
          + "process has added it, load the ring again")
    }
    let data = authenticatedData(for: key, value.algorithm)
    do {
      // Both algorithms expect the nonce right before the content.
      let count = value.nonce.count + value.content.count
      let plain = try withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { combined in
        combined.copyMemory(from: value.nonce)
        UnsafeMutableRawBufferPointer(rebasing: combined[value.nonce.count...]).copyMemory(from: value.content)
        let combined = UnsafeRawBufferPointer(combined)
        return switch value.algorithm {
        case .aesGCM: try AES.GCM.open(.init(combined: combined), using: ringKey.key, authenticating: data)
        case .chaChaPoly: try ChaChaPoly.open(.init(combined: combined), using: ringKey.key, authenticating: data)
        }
      }
      return Opened(plain: plain, ringKey: ringKey, algorithm: value.algorithm)
    } catch {
      throw EncryptedValueError("the encrypted value is damaged, was changed, or belongs to another entry or purpose")
    }
  }

  /// Decrypts the value that an update replaces, or returns `nil` if that is not possible.
  func openStored(_ stored: ArraySlice<UInt8>, key: StoreKey?, keys: RingSnapshot) -> Opened? {
    do {
      return try stored.withUnsafeBytes { try open($0, key: key, keys: keys) }
    } catch {
      // The update replaces these bytes, whatever they are.
      return nil
    }
  }

  /// Returns the authenticated data of a value: the Enc_structure of RFC 9052, section 5.3.
  private func authenticatedData(for key: StoreKey?, _ algorithm: EncryptionAlgorithm) -> [UInt8] {
    let start = algorithm == .aesGCM ? ValueSealer.starts.aesGCM : ValueSealer.starts.chaChaPoly
    let keySize = key.map { CBORHead.size(of: $0.count) + $0.count } ?? 1
    let externalSize = boundPurpose.count + keySize
    var data: [UInt8] = []
    data.reserveCapacity(start.count + CBORHead.maximumSize + externalSize)
    data.append(contentsOf: start)
    CBORHead.append(CBORHead.byteString, externalSize, to: &data)
    data.append(contentsOf: boundPurpose)
    if let key {
      CBORHead.append(CBORHead.byteString, key.count, to: &data)
      key.withUnsafeBytes { data.append(contentsOf: $0) }
    } else {
      data.append(CBORHead.null)
    }
    return data
  }
}
#endif
