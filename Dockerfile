# A server without torch, for folders that `samesense export` wrote:
#   docker build --tag samesense --build-arg VERSION=0.1.0 .
#   docker run --publish 8000:8000 --volume "$PWD/exported:/model:ro" samesense /model --api-key-file /model/keys
FROM python:3.13-slim
# the version of the package: there is no git in the image
ARG VERSION=0.0.0
WORKDIR /build
COPY . .
RUN SETUPTOOLS_SCM_PRETEND_VERSION="$VERSION" pip install --no-cache-dir --constraint constraints.txt '.[serve,search]' && rm -rf /build
RUN useradd --create-home serve
USER serve
WORKDIR /home/serve
EXPOSE 8000
STOPSIGNAL SIGTERM
ENTRYPOINT ["samesense", "serve", "--host", "0.0.0.0", "--port", "8000"]
CMD ["/model"]
