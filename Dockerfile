# The hello example: docker build -t tuza-hello . && docker run --rm -p 8080:8080 tuza-hello
FROM debian:12-slim AS build
WORKDIR /src
COPY . .
RUN bash -c '. .ci/packages.sh && need build' \
 && cmake --preset release -DTUZA_TESTS=OFF -DTUZA_BENCHMARKS=OFF \
 && cmake --build build/release --target hello \
 && strip -o /hello build/release/examples/hello

FROM debian:12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends libspdlog1.10 \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /hello /usr/local/bin/hello
USER nobody
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["hello"]
CMD ["--listen", "0.0.0.0:8080"]
