package import Larder

extension Stores {
  /// Opens a store, which is created if it is missing and the options allow it.
  ///
  /// The store of another program that records no codec has the chosen one, because a wrong record would make programs that
  /// read its values otherwise refuse it.
  ///
  /// - Parameters:
  ///   - url: The URL of the store.
  ///   - target: The store.
  ///   - options: The options for opening the store.
  ///   - chosenName: The codec of a store that records none, as the caller chose it; `nil` for the default.
  ///   - newName: The codec of a new store, with its transforms. Defaults to `nil`, for the chosen one.
  /// - Throws: ``CommandFailure`` if the scheme is unknown, or the store records no codec and needs a choice; the errors of
  ///   opening the store.
  package static func open(
    _ url: StoreURL, _ target: StoreTarget, options: StoreOptions, chosenName: String?, newName: CodecName? = nil
  ) async throws -> any UntypedStore {
    let provider = try provider(for: url, target)
    do {
      guard let newName, options.createsIfMissing, "\(newName)" != chosenName ?? provider.codecName else {
        return try await provider.open(url, options: options, newCodecName: chosenName)
      }
      // Only a new store has the transforms.
      var existing = options
      existing.createsIfMissing = false
      do {
        return try await provider.open(url, options: existing, newCodecName: chosenName)
      } catch let error as StoreError where error.code == .notFound {
        return try await provider.open(url, options: options, newCodecName: "\(newName)")
      }
    } catch let error as StoreError where error.underlying is UnrecordedCodecError {
      throw CommandFailure(error, hint: "Name it with \(target.codec.option), as in \(target.codec.option) raw.")
    }
  }

  /// Refuses a store that records another codec than the chosen one.
  ///
  /// - Parameters:
  ///   - name: The name of the store's codec, whose transforms do not count.
  ///   - url: The URL of the store.
  ///   - choice: The choice of the caller.
  /// - Throws: ``CommandFailure``.
  package static func checkCodec(_ name: CodecName, of url: StoreURL, suits choice: CodecChoice) throws {
    guard let codec = choice.codec, name.base != codec.rawValue else { return }
    throw CommandFailure(
      .badData, "\(url) was written with the codec \(name), not with \(codec.rawValue); it was left unchanged",
      advice: "Omit \(choice.option), which is for stores that record no codec.")
  }
}
