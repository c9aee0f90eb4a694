public import Larder

extension QueueHandler {
  /// The settings of a handler in a configuration: `lease` and `limit`.
  public static var settings: [LayerSetting] {
    [
      LayerSetting("lease", .duration, "the length of a lease, which is renewed; by default, 30s"),
      LayerSetting("limit", .duration, "the longest time that an item may take; by default, there is no limit"),
    ]
  }

  /// Creates a handler with settings of a configuration.
  ///
  /// - Parameters:
  ///   - queue: The queue.
  ///   - settings: The settings. Those that are missing have the defaults of the other initializers.
  ///   - process: A closure that processes one item.
  public init<Queue: DurableQueue>(
    _ queue: Queue, settings: LayerSettings,
    process: @escaping @Sendable (QueueDelivery<Queue.Value>) async throws -> Void
  ) {
    self.init(
      queue, lease: settings.duration("lease") ?? .seconds(30), timeLimit: settings.duration("limit"), process: process)
  }
}

extension QueueWorker {
  /// The settings of a worker in a configuration: `concurrency`, `shutdown` and `exits`, and those of its handlers.
  public static var settings: [LayerSetting] {
    [
      LayerSetting("concurrency", .count(1...Int.max), "the most items at the same time; by default, 10"),
      LayerSetting("shutdown", .duration, "the longest time that a shutdown waits for items; by default, 20s"),
      LayerSetting("exits", .flag, "whether the worker ends if all slots hang; by default, it does not"),
    ] + QueueHandler.settings
  }

  /// Creates a worker with settings of a configuration.
  ///
  /// ```swift
  /// let settings = try stacks.settings(QueueWorker.settings, of: "mail", in: "workers")
  /// let worker = QueueWorker([QueueHandler(mails, settings: settings) { try await send($0.value) }], settings: settings)
  /// ```
  ///
  /// - Parameters:
  ///   - handlers: The handlers.
  ///   - settings: The settings. Those that are missing have the defaults of the other initializer.
  ///   - clock: The clock. Defaults to a `ContinuousClock`.
  ///   - onEvent: A closure that receives the events. Defaults to `nil`.
  public convenience init(
    _ handlers: [QueueHandler], settings: LayerSettings, clock: any Clock<Duration> = ContinuousClock(),
    onEvent: (@Sendable (QueueWorkerEvent) -> Void)? = nil
  ) {
    self.init(
      handlers, concurrency: settings.count("concurrency") ?? 10,
      shutdownLimit: settings.duration("shutdown") ?? .seconds(20), exitsIfStalled: settings.flag("exits") ?? false,
      clock: clock, onEvent: onEvent)
  }
}
