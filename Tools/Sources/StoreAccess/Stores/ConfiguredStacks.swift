import ArgumentParser
import Foundation
package import Larder
import LarderBatching
import LarderBounded
import LarderCache
import LarderCompression
import LarderConfiguration
import LarderExpiry
import LarderMetrics
import LarderMirror
import LarderObservation
import LarderStoreQueue

/// The stacks of the file that the option `--config` names, and of the environment.
package enum ConfiguredStacks {
  private static let file = Locked<String?>(nil)

  /// The stacks that arguments have named, by their URLs.
  private static let named = Locked<[String: (options: StoreOptions, layers: [String])]>([:])

  /// The path that the option `--config` names, or `nil` if it was not given.
  package static var path: String? { file.withLock { $0 } }

  /// Takes the option `--config` out of a command line, before or after the verb.
  ///
  /// - Parameter arguments: The command line.
  /// - Returns: The command line without the option.
  /// - Throws: `ValidationError` if the option has no value or is there twice.
  package static func take(from arguments: [String]) throws -> [String] {
    var rest: [String] = []
    var remaining = arguments[...]
    while let argument = remaining.popFirst() {
      if argument == "--" {
        rest.append(argument)
        break
      }
      let value: String?
      if argument == "--config" {
        value = remaining.popFirst()
      } else if argument.hasPrefix("--config=") {
        value = String(argument.dropFirst("--config=".count))
      } else {
        rest.append(argument)
        continue
      }
      guard let path = value, !path.isEmpty else {
        throw ValidationError("--config needs the path of a JSON or YAML file")
      }
      let isFirst = file.withLock { file in
        defer { file = path }
        return file == nil
      }
      guard isFirst else { throw ValidationError("--config can be given once") }
    }
    return rest + remaining
  }

  /// Returns the URL of a store, if the argument is the name of a stack and there is a configuration.
  ///
  /// - Parameter argument: A URL, or the name of a stack, which has no colon.
  /// - Throws: `ValidationError`, which names the key.
  package static func url(_ argument: String) throws -> String {
    guard !argument.contains(":"), file.withLock({ $0 != nil }) else { return argument }
    return try reporting {
      let stacks = try stacks()
      let url = try stacks.url(of: argument).description
      let stack = (options: try stacks.options(of: argument), layers: try stacks.layers(of: argument))
      named.withLock { $0[url] = stack }
      return url
    }
  }

  /// Returns the options for opening a store, which the configuration of a stack limits.
  ///
  /// - Parameters:
  ///   - url: The URL of the store.
  ///   - createsIfMissing: A Boolean value that indicates whether the verb creates a missing store.
  ///   - access: The access that the verb needs.
  /// - Throws: ``CommandFailure`` if the verb writes, and the stack is only read or has a layer that must see all writes.
  package static func options(of url: String, createsIfMissing: Bool, access: StoreAccess) throws -> StoreOptions {
    guard let stack = named.withLock({ $0[url] }) else {
      return StoreOptions(createsIfMissing: createsIfMissing, access: access)
    }
    if access == .readWrite {
      let advice = "Use the URL \(url) in place of the name to write nevertheless."
      guard stack.options.access == .readWrite else {
        throw CommandFailure(.usage, "the configuration says that the stack is only read", advice: advice)
      }
      for (layer, consequence) in [
        ("bounded", "which would neither find nor count what the tool writes"),
        ("mirrored", "whose secondary would not get what the tool writes"),
        ("tiered", "whose copies would stay as they are"),
      ] where stack.layers.contains(layer) {
        throw CommandFailure(.usage, "the stack has the layer \(layer), \(consequence)", advice: advice)
      }
    }
    return StoreOptions(
      createsIfMissing: createsIfMissing && stack.options.createsIfMissing, durability: stack.options.durability,
      access: access)
  }

  /// Returns the description of a stack, or of all that a configuration can choose from.
  ///
  /// - Parameter name: The name of the stack, or `nil`.
  /// - Throws: `ValidationError`, which names the key.
  package static func description(of name: String?) throws -> String {
    guard let name else { return Stacks(sources: [], stores: Stores.registry.providers, layers: layers).describe() }
    guard file.withLock({ $0 != nil }) else {
      throw ValidationError("a stack needs --config, the file that describes it")
    }
    return try reporting {
      let stacks = try stacks()
      return try stacks.describe(name) + "\n  at \(stacks.url(of: name))"
    }
  }

  private static func stacks() throws -> Stacks {
    let path = file.withLock { $0 ?? "" }
    let isYAML = [".yaml", ".yml"].contains { path.hasSuffix($0) }
    return Stacks(
      sources: [.environment(), try isYAML ? .yaml(path: path) : .json(path: path)], stores: Stores.registry.providers,
      layers: layers)
  }

  private static func reporting<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as StoreError {
      throw ValidationError(error.message)
    } catch {
      throw ValidationError("\(file.withLock { $0 ?? "" }) cannot be read: \(error)")
    }
  }

  /// The layers that a configuration can have.
  ///
  /// The tool reads the names of codecs from the store, so it puts no layer around a store itself.
  private static var layers: [any LayerProvider] {
    [
      QueueLayerProvider(), MeteredLayerProvider(), ExpiringLayerProvider(), WriteBehindLayerProvider { _ in },
      CachedLayerProvider(), TieredLayerProvider(), BatchedLayerProvider(), MirroredLayerProvider { _, _ in },
      CompressedLayerProvider(), EncryptedLayer(), BoundedLayerProvider(), ObservableLayerProvider(),
    ]
  }

  /// The layer `encrypted`, whose rings only the program knows.
  private struct EncryptedLayer: LayerProvider {
    var name: String { "encrypted" }
    var summary: String { "encrypts values" }
    var place: LayerPlace { .encryption }
    var settings: [LayerSetting] {
      [
        LayerSetting("ring", .text, "the name of the key ring; required"),
        LayerSetting("purpose", .text, "the purpose that values are bound to; by default, the name of the stack"),
      ]
    }

    func check(_ settings: LayerSettings) throws {
      if settings.text("ring") == nil { throw settings.error("ring", "is required; set the name of a key ring") }
    }

    func open<Value: Sendable>(
      codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
    ) async throws -> AnyDataStore<Value> {
      try await base.open(codec: codec)
    }
  }
}
